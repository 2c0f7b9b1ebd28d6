"""Every number that the refitting solvers were tuned by, in one place.

They were set by `benchmarks/tune_defaults.py`, which prints the excess risk of each alternative
over the synthetic suite of `benchmarks/accuracy_cases.py`; no real data was looked at. Shares are
parts of a fit's budget: of rho, or of epsilon where delta is 0.
"""

from __future__ import annotations

from dataclasses import dataclass

#: Scales of entries and slopes: all of them together.
SCALES = 0.05

#: The first intercept gets at least the one and, where noise would hide it (constant_share.py), up
#: to the other: with the scales, the search and the check that is less than everything.
INTERCEPT, MOST_INTERCEPT = 0.02, 0.3

#: Looking for columns, and the share of it that measures the column that was found.
SEARCH = 0.4
MEASURED = 0.23

#: The check of the model against the best constant, and the estimate of its fit.
CHECK = 0.03

#: The slopes are measured anew when so many columns were found, twice as many and so on. A search
#: that cannot count them does so at equal intervals.
FIRST_SCALE, LAST_SCALE, SCALES_IN_SEARCH = 2, 23, 4

#: Slopes are clipped at a quantile when columns are ranked; also at this part of a high quantile,
#: for data in which most slopes are nearly 0.
RANKING_QUANTILE, HIGH_QUANTILE, PART_OF_HIGH = 0.6, 0.95, 1 / 3

#: Entries are clipped at this quantile of their sizes when columns are ranked.
ENTRY_QUANTILE = 0.5

#: Slopes of regressions are clipped at this multiple of their high quantile in a refit. Slopes of
#: classifiers never are: a label's slope is largest where the model is most wrong.
REFIT_CUT = 0.75

#: Rows are shortened to this quantile of their lengths on the support in a refit.
LENGTH_QUANTILE = 0.8

#: The search plans for this many times the number of selections of the explicit rule, makes each
#: dearer by a factor after one that found nothing, and ends when the next would take more than one
#: part in `FEWEST` of its budget, or after so many failures since the last column that was new.
SELECTIONS, DEARER, FEWEST, PATIENCE = 3.0, 2.0, 4.0, 3
MOST_SELECTIONS = 256

#: A step along a column counts as found if it exceeds its noise this many times.
FOUND = 2.0

#: A step is never longer than if a correlation fell with it by this many times the noise.
LEAST_FALL = 2.0


@dataclass(frozen=True)
class Newton:
    """Newton steps on a support.

    `share` is the part that it takes of what is left. Of this, `curvature` goes to the matrix of
    second derivatives, which classifiers measure anew for each step, `scales` to scales, and the
    rest to gradients, by the shares in `steps`.
    Coefficients below `prune` standard errors are dropped afterwards.
    """

    share: float
    curvature: float
    scales: float
    steps: tuple[float, ...]
    prune: float


#: A refit of all columns that were found, and one of those that it leaves.
REFITS = (Newton(0.3, 0.25, 0.08, (1.0,), 2.0), Newton(1.0, 0.2, 0.08, (0.25, 0.75), 1.5))

#: Unpenalized columns are fitted before the search, so that it looks for what they leave. Of the
#: shares .05, .1, .2 and .4, by benchmarks/tune_unpenalized.py (three designs of numbers and of
#: classes, four fits of each), .05 has larger errors of unpenalized coefficients than .1 on five of
#: the six, and .4 finds fewer columns on three. Ten more fits do not tell .1, .15 and .2 apart.
FIRST_REFIT = Newton(0.1, 0.25, 0.08, (1.0,), 0.0)

#: This part of the last Newton step of a classifier counts as an error of its coefficients.
UNFINISHED = 0.25

#: The fits of a solver that takes all columns.
FITS_OF_ALL = (Newton(0.4, 0.3, 0.06, (1.0,), 2.0), Newton(1.0, 0.2, 0.08, (0.3, 0.7), 1.0))

#: The check must exceed its noise this many times to count.
SURE = 3.0

#: The check cuts losses at this multiple of the loss of a slope at its high quantile.
CHECK_CUT = 1.5

#: With at most this part of the root of rows times epsilon (1 if it is larger) in columns,
#: all of them are fitted.
FEW_COLUMNS = 0.25

#: With more than this part of the rows in columns, most columns are too rare to be measured.
MANY_COLUMNS = 1 / 3

#: With at most so many columns for each class, and rows bounded entry by entry, three classes or
#: more are fitted together: the noise grows with the root of the columns, and that of a search for
#: columns with the root of the classes. On synthetic rows of three classes with six relevant
#: columns both are alike at 50 columns and the search is better at 300; ten classes of digits, with
#: 64 columns, are far better together.
COLUMNS_OF_A_CLASS = 32

#: Up to so many columns are whitened where the length of rows is bounded: a fit takes time with
#: their square. Where entries are bounded, up to so many.
WHITENED_COLUMNS, WHITENED_ENTRIES = 512, 128

#: Where entries are bounded, numbers are predicted by a search if there are more columns than
#: `ALL_COLUMNS`, and rows times epsilon are between so many times the columns: with less a search
#: finds nothing, with more it is no better. Drawn on correlated and on sparse designs. With three
#: relevant columns it is ahead by .13 and .15 of R2 at 5,000 x 100 and 10,000 x 300 and epsilon 1;
#: on correlated columns it is far behind, and with 30 columns, 15 of them relevant, it finds none.
SEARCHED, ALL_COLUMNS = (8.0, 100.0), 32

#: Rows times the strength of the guarantee below so many times the root of the columns: noise hides
#: what whitened gradients measure, and averaged ones are better. For numbers, and for classes.
#: Drawn on sizes of nine designs and on tables of benchmarks/arena_rdatasets.py at epsilon 0.3 and
#: 1. Numbers: averaged gradients have 0 to .14 of R2 more up to 65, .03 more on categories and as
#: much less on correlated numbers at 82, .01 less from 100 on. Classes: .01 to .04 of AUC more up
#: to 200, up to .02 more and .003 less to 400, and the same beyond.
#: Where the curvature is measured first, as of counts, the spread of rows is not, and the limits
#: are those that were drawn before it was: null counts cost .016 nats at 67, and whitened .004.
FEW_ROWS, FEW_ROWS_OF_CLASSES = 75.0, 400.0
FEW_ROWS_MEASURED, FEW_ROWS_OF_CLASSES_MEASURED = 40.0, 115.0

#: Below so many times the root of the columns a search finds none, and labels of rows that are not
#: negative, of which most entries are often 0, are predicted from all columns. On 6,000 x 1,000
#: flags all of which matter, at 34, and on grants of benchmarks/arena_rdatasets.py, at 12, scaled
#: gradients have .09 and .2 of AUC more; with five relevant ones of 500 dense columns a search has
#: .24 more at 48, and neither has anything at 15.
UNSEARCHABLE = 25.0

#: Without delta, with more than this part of the root of rows times epsilon in columns, which count
#: twice for classes, a few gradients are measured and no second moments. With housing, diamonds,
#: affairs, visits and five designs in sight: at .17 to .5 gradients have .1 to .7 of R2 more, at .1
#: and below .02 to .15 less; diamonds at .2 and .4 have .05 and .2 less.
PURE_COLUMNS = 0.13

#: A bin of sizes counts if it holds more than this many standard deviations of its noise.
VISIBLE = 3.0
