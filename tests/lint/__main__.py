"""`python -m tests.lint` checks the rules that no linter knows, and prints the place of each fault."""

from __future__ import annotations

from tests.lint import architecture, op_names, package_map, prose, variable_names


def main() -> int:
    """Check all rules; 1 if any is broken."""
    rules = [*architecture.RULES, *prose.RULES, *op_names.RULES, *package_map.RULES, *variable_names.RULES]
    broken = 0
    for rule in rules:
        faults = list(rule())
        if faults:
            broken += 1
            print(f"{rule.__name__.replace('_', ' ')}: {rule.__doc__}", *faults, sep="\n  ")
    print(f"{len(rules)} rules, {broken} broken")
    return 1 if broken else 0


if __name__ == "__main__":
    raise SystemExit(main())
