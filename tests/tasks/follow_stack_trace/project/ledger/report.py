"""The report of a month."""

from ledger.money import format_cents


def total(rows, name):
    """The sum of what bears a name."""
    return sum(amount for _, found, amount in rows if found == name)


def render(rows):
    """One line for each name, with the sum of its amounts."""
    lines = []
    for name in sorted({name for _, name, _ in rows}):
        lines.append(f"{name:<12} {format_cents(total(rows, name)):>10}")
    return "\n".join(lines)
