"""Intervals as text, as CAST writes them."""


def month_text(months: int) -> str:
    years, rest = divmod(abs(months), 12)
    return f"{'-' if months < 0 else '+'}{years}-{rest:02}"


def second_text(milliseconds: int) -> str:
    """`+1 02:03:04.005`: days, hours, minutes and seconds."""
    seconds, ms = divmod(abs(milliseconds), 1_000)
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    sign = "-" if milliseconds < 0 else "+"
    return f"{sign}{days} {hour:02}:{minute:02}:{second:02}.{ms:03}"
