"""The study file as the user writes it: base instance, axes, options, prices that vary, what to mark and to draw."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Key = Annotated[str, Field(min_length=1, max_length=200)]
MAX_VALUES = 100_000


class Section(BaseModel):
    """A mapping of the file; unknown keys and non-finite numbers are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, populate_by_name=True)


class RangeSection(Section):
    """Numbers from `from` up to `to`, included where it is hit: by adding `step`, or by multiplying by `factor`."""

    start: float | int = Field(alias="from", description="first value")
    to: float | int = Field(description="no value is larger")
    step: float | int | None = Field(None, gt=0, description="what one value adds to the one before")
    factor: float | int | None = Field(None, gt=1, description="what one value multiplies the one before by")

    @model_validator(mode="after")
    def _rises(self) -> "RangeSection":
        if (self.step is None) == (self.factor is None):
            raise ValueError("either step or factor")
        if self.to < self.start:
            raise ValueError("`to` from `from` on")
        if self.factor is not None and self.start <= 0:
            raise ValueError("`from` above 0 where a factor multiplies it")
        return self


Values = Annotated[list[Any], Field(min_length=1, max_length=MAX_VALUES)] | RangeSection


class AxisSection(Section):
    """What varies: one field, or several that change together."""

    path: Key | None = Field(
        None, description="field of the instance, of the catalog (catalog.switches.KEY.price.usd) or of the options"
    )
    values: Values | None = Field(None, description="its values, or the range of them")
    pair: dict[Key, Values] | None = Field(
        None, min_length=1, description="fields that change together, each with as many values"
    )
    name: Key | None = Field(None, description="name of a further column that holds the labels")
    labels: list[Key] | None = Field(None, description="a short text for each value, for tables and pictures")

    @model_validator(mode="after")
    def _is_one_kind(self) -> "AxisSection":
        if (self.pair is None) == (self.path is None) or (self.values is None) != (self.path is None):
            raise ValueError("either path and values, or pair")
        if (self.name is None) != (self.labels is None):
            raise ValueError("name and labels together, or neither")
        return self


class StudyOptions(Section):
    """How every point is searched and certified; without a time limit a study gives the same table each time."""

    time_limit_s: float | None = Field(None, ge=0, description="seconds for the search of one point; default: no limit")
    gap: float = Field(0.0, ge=0, lt=1, description="stop when the cost is proven within this part of the optimum")
    seed: int = Field(0, ge=0, lt=2**31, description="random seed of the solver")
    certify: bool = Field(True, description="certify every design, intact and under every single failure")
    pairs: bool = Field(False, description="certify pairs of failures, too")


class PriceSection(Section):
    """What a price may be: anything between two values, or a likely value with a deviation."""

    low: float | None = Field(None, alias="from", ge=0, description="lowest price in USD")
    high: float | None = Field(None, alias="to", ge=0, description="highest price in USD")
    mode: float | None = Field(None, ge=0, description="likeliest price; default: all between are equally likely")
    mean: float | None = Field(None, ge=0, description="mean of a normal distribution, which is cut off at 0")
    deviation: float | None = Field(None, gt=0, description="standard deviation of a normal distribution in USD")

    @model_validator(mode="after")
    def _is_one_kind(self) -> "PriceSection":
        spread = (self.low is not None, self.high is not None)
        normal = (self.mean is not None, self.deviation is not None)
        if not (all(spread) and not any(normal)) and not (all(normal) and not any(spread) and self.mode is None):
            raise ValueError("either from and to (and mode), or mean and deviation")
        if self.low is not None and self.high is not None:
            if self.high < self.low:
                raise ValueError("`to` from `from` on")
            if self.mode is not None and not self.low <= self.mode <= self.high:
                raise ValueError("`mode` between `from` and `to`")
        return self


class PricesSection(Section):
    """Uncertain prices: which design stays the cheapest, what a wrong choice costs, where the choice changes."""

    vary: dict[Key, PriceSection] = Field(min_length=1, description="prices by path, catalog.switches.KEY.price.usd")
    samples: int = Field(200, ge=1, le=MAX_VALUES, description="number of price lists that are drawn")
    seed: int = Field(0, ge=0, lt=2**31, description="random seed of the price lists")
    break_even: bool = Field(True, description="search the values at which a price alone changes the choice")


class PlotSection(Section):
    """A picture of columns of the table."""

    kind: Literal["lines", "heat", "front"] = Field(
        description="lines: y over x; heat: a colour for each x and y; front: points, the Pareto-optimal ones joined"
    )
    x: Key = Field(description="column along")
    y: Key = Field(description="column up")
    by: Key | None = Field(None, description="lines, front: a line or colour for each value of this column")
    value: Key | None = Field(None, description="heat: the column that is shown as colour")
    log: list[Literal["x", "y", "value"]] = Field(
        default_factory=list[Literal["x", "y", "value"]], description="axes with a logarithmic scale"
    )
    title: Key | None = Field(None, description="heading of the picture")
    file: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*\.(svg|png)$", max_length=100)] = Field(
        description="name of the picture in the output folder, NAME.svg or NAME.png"
    )

    @model_validator(mode="after")
    def _has_what_its_kind_takes(self) -> "PlotSection":
        if (self.value is not None) != (self.kind == "heat"):
            raise ValueError("`value` for a heat map, and only there")
        if self.by is not None and self.kind == "heat":
            raise ValueError("no `by` for a heat map")
        return self


class StudyFile(Section):
    """A study: a base instance, and what varies about it."""

    schema_version: Literal[1] = 1
    name: Key | None = Field(None, description="name in tables and pictures; default: that of the base")
    base: Key = Field(description="path of the instance file, relative to this file")
    axes: list[AxisSection] = Field(default_factory=list[AxisSection], max_length=20)
    options: StudyOptions = Field(default_factory=lambda: StudyOptions.model_validate({}))
    pareto: list[Key] = Field(default_factory=list[Key], max_length=3, description="two or three columns of the front")
    prices: PricesSection | None = Field(None, description="prices of the base that are uncertain")
    plots: list[PlotSection] = Field(default_factory=list[PlotSection], max_length=100)
    tables: list[Literal["csv", "json", "parquet"]] = Field(
        default_factory=lambda: ["csv", "json"], description="kinds of table files to write"
    )

    @model_validator(mode="after")
    def _fits_together(self) -> "StudyFile":
        if not self.axes and self.prices is None:
            raise ValueError("axes, prices, or both")
        if len(self.pareto) == 1:
            raise ValueError("two or three columns in `pareto`")
        return self
