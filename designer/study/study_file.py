"""Reads a study file: its base, its axes with the line of each value, and all that is wrong with them at once."""

from dataclasses import dataclass
from pathlib import Path

from designer.errors import Problem, StudyError
from designer.plain_yaml import dotted
from designer.source import Source, read_yaml, validate
from designer.study.base import Base, refused_values
from designer.study.paths import Location
from designer.study.points import Axis, check_points, points_of, range_values
from designer.study.run import Plan
from designer.study.schema import AxisSection, StudyFile, Values


@dataclass(frozen=True)
class Study:
    """A study file, resolved: what to design, and what to do with the table."""

    plan: Plan
    file: StudyFile


def load_study(path: Path | str) -> Study:
    """The study of a YAML (or JSON) file.

    Raises:
        StudyError: the file cannot be read or has problems, each named with its line.
        InstanceError, CatalogError: the base cannot be used.
    """
    source = read_yaml(path, StudyError)
    file = validate(StudyFile, source, StudyError)
    base = Base.of(Path(path).parent / file.base)
    problems: list[Problem] = []
    axes = tuple(_axis(number, section, source, problems) for number, section in enumerate(file.axes))
    if not problems:
        check_points(axes)
        problems = refused_values(base, axes, source)
    if file.prices is not None:
        prices = tuple(Axis((path,), places=(("prices", "vary", path),), values=((0,),)) for path in file.prices.vary)
        problems += _no_prices(prices, source) or refused_values(base, prices, source)
    if problems:
        raise StudyError(problems)
    return Study(Plan(base, tuple(points_of(axes)), file.options, file.name or base.name), file)


def _axis(number: int, section: AxisSection, source: Source, problems: list[Problem]) -> Axis:
    at: Location = ("axes", number)
    given: dict[str, Values] = section.pair or {}
    places: tuple[Location, ...] = tuple((*at, "pair", path) for path in given)
    if section.path is not None and section.values is not None:
        given, places = {section.path: section.values}, ((*at, "values"),)
    columns = [values if isinstance(values, list) else range_values(values) for values in given.values()]
    length = len(columns[0])

    def refuse(place: Location, found: str, allowed: str) -> None:
        problems.append(Problem(source.path, source.line(place), dotted(place), found, allowed))

    for place, column in zip(places, columns, strict=True):
        if len(column) != length:
            refuse(place, f"{len(column)} values", f"{length} values, as many as {dotted(places[0])} has")
    labels = tuple(section.labels or ())
    if section.labels is not None and len(labels) != length:
        refuse((*at, "labels"), f"{len(labels)} labels", f"{length} labels, one a value")
    if any(problem.field.startswith(dotted(at)) for problem in problems):
        return Axis(tuple(given), places=places)
    return Axis(tuple(given), tuple(zip(*columns, strict=True)), None, section.name, labels, places)


def _no_prices(prices: tuple[Axis, ...], source: Source) -> list[Problem]:
    allowed = "the path of a price, catalog.SECTION.KEY.price.usd or catalog.fibres.KEY.usd_per_m"
    return [
        Problem(source.path, source.line(axis.places[0]), dotted(axis.places[0]), repr(axis.paths[0]), allowed)
        for axis in prices
        if not (axis.paths[0].startswith("catalog.") and axis.paths[0].endswith((".price.usd", ".usd_per_m")))
    ]
