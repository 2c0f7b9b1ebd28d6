"""What a fit is worth before it is paid for, from public facts and a guess.

`forecast` simulates one fit, `forecast_curve` a grid of them, `compare_solvers` every solver that
applies, and `required_epsilon` and `required_rows` search for what a wanted score takes.
"""

from riata.forecasting.comparison import Candidate, Comparison, compare_solvers
from riata.forecasting.costs import Cost, cost_of
from riata.forecasting.curve import ForecastCurve, forecast_curve
from riata.forecasting.required import Required, required_epsilon, required_rows
from riata.forecasting.result import Forecast
from riata.forecasting.simulate import forecast

__all__ = [
    "Candidate",
    "Comparison",
    "Cost",
    "Forecast",
    "ForecastCurve",
    "Required",
    "compare_solvers",
    "cost_of",
    "forecast",
    "forecast_curve",
    "required_epsilon",
    "required_rows",
]
