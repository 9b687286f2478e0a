import pytest

from barrow.units import format_bytes, format_seconds, parse_bytes


@pytest.mark.parametrize("text", ["5 parsecs", "", "-3GB", "1e99", "GB", None, "1.2.3MB", True])
def test_what_is_not_a_size_is_refused_with_an_example(text):
    with pytest.raises(ValueError, match="is not a size"):
        parse_bytes(text)


@pytest.mark.parametrize(
    ("text", "count"), [("1kB", 1000), ("1 KiB", 1024), ("2g", 2 * 10**9), ("7", 7)]
)
def test_sizes_are_read_in_any_usual_spelling(text, count):
    assert parse_bytes(text) == count


@pytest.mark.parametrize("count", [0, 1, 1023, 1024, 10**6, 10**12, 2**62])
def test_a_size_that_was_written_can_be_read_back_to_three_digits(count):
    assert parse_bytes(format_bytes(count)) == pytest.approx(count, rel=0.01)


def test_durations_never_show_sixty_seconds():
    assert format_seconds(119.9) == "2 min 0 s"
