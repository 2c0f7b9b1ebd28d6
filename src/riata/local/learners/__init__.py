"""What the server makes of the sums. Everything here is post-processing and costs nobody privacy.

- `mean`: means, plain and sparse
- `moments`: second moments and cross moments with their noise, with the constant taken out
- `ridge`: regression with a prior fitted to the evidence; `lasso`: sparse regression
- `screening`: regression on thousands of columns; `logistic`: a scale for the direction
- `model`: the result
"""

from riata.local.learners.learn import learn
from riata.local.learners.model import LocalModel

__all__ = ["LocalModel", "learn"]
