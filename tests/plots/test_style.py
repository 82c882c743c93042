"""Equal figures give equal bytes; formats, panels and numbers."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import matplotlib as mpl
import pytest
from tests.plots.pictures import CHO

from afresh.plots.plan_plot import plan_figure
from afresh.plots.style import PictureFormat, new_figure, picture_format, plain, render
from afresh.values.errors import UsageError

FORMATS: list[PictureFormat] = ["png", "svg"]


@pytest.mark.parametrize("kind", FORMATS)
def test_equal_input_gives_equal_bytes_and_leaves_matplotlib_as_it_was(kind: PictureFormat) -> None:
    before = dict(mpl.rcParams)
    assert render(plan_figure(CHO), kind) == render(plan_figure(CHO), kind)
    assert dict(mpl.rcParams) == before


def test_svg_is_xml_that_names_no_date() -> None:
    data = render(plan_figure(CHO), "svg")
    assert ElementTree.fromstring(data).tag == "{http://www.w3.org/2000/svg}svg"
    assert b"dc:date" not in data


@pytest.mark.parametrize("name", ["a.pdf", "a", "a.png.gz"])
def test_other_pictures_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match=r"for a picture: use \.png or \.svg"):
        picture_format(name)


@pytest.mark.parametrize(
    ("panels", "inches"), [(1, (5.2, 4)), (3, (15.6, 4)), (4, (10.4, 8)), (7, (15.6, 12))]
)
def test_panels_stand_at_most_three_in_a_row(panels: int, inches: tuple[float, float]) -> None:
    figure, axes = new_figure(panels)
    assert len(axes) == panels
    assert tuple(figure.get_size_inches()) == pytest.approx(inches)


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "0"), (0.001, "10⁻³"), (12345.0, "12345"), (2e7, "2·10⁷"), (-0.5, "-0.5")]
)
def test_numbers_read_as_people_write_them(value: float, text: str) -> None:
    assert plain(value) == text
