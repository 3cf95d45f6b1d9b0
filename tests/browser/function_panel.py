"""The function view in a page, operated like a user."""

from __future__ import annotations

from dataclasses import dataclass

from playwright.sync_api import Locator, Page

SHOWN_MS = 60_000


@dataclass
class FunctionPanel:
    """The first function in `page`, by itself or over the picture of a graph."""

    page: Page

    @property
    def root(self) -> Locator:
        """The part of the view that shows the function."""
        return self.page.locator(".gl-fn").first

    def side(self, name: str) -> Locator:
        """`definition` or `instance`."""
        title = {"definition": "Definition", "instance": "Instantiation"}[name]
        return self.root.locator(f'[data-side="{title}"]')

    # ---- waiting ----------------------------------------------------------------------------------------------------

    def wait_shown(self, name: str) -> None:
        """Wait until the function called `name` is shown."""
        self.page.wait_for_function(
            "name => document.querySelector('[data-function].gl-of-function, .gl-fn[data-function]')?.dataset.function === name",
            arg=name,
            timeout=SHOWN_MS,
        )

    def wait_gone(self) -> None:
        """Wait until no function is shown any more."""
        self.page.wait_for_function("() => !document.querySelector('.gl-fn')", timeout=SHOWN_MS)

    def wait_drawn(self, box: str, side: str = "instance") -> None:
        """Wait until a box is on one of the two pictures."""
        self.side(side).locator(f'[data-node-id="{box}"]').wait_for(timeout=SHOWN_MS)

    def wait_text(self, side: str, text: str) -> None:
        """Wait until the text of a side contains `text`."""
        self.side(side).locator("pre", has_text=text).first.wait_for(timeout=SHOWN_MS)

    # ---- looking ----------------------------------------------------------------------------------------------------

    def text(self, side: str) -> str:
        """The text of a side."""
        return str(self.side(side).locator(".gl-fn-text pre").inner_text())

    def crumbs(self) -> list[str]:
        """The breadcrumbs."""
        return [str(text) for text in self.root.locator(".gl-crumb-name").all_inner_texts()]

    def value(self, attr: str) -> str:
        """The content of an attr's field."""
        return str(self._field(attr).input_value())

    def error(self, attr: str) -> str:
        """The error of an attr; waits until there is one."""
        error = self.root.locator(".gl-field", has=self.page.locator(f'[data-attr="{attr}"]')).locator(".gl-field-error:not(:empty)")
        error.wait_for(timeout=SHOWN_MS)
        return str(error.inner_text())

    # ---- using ------------------------------------------------------------------------------------------------------

    def set_attr(self, attr: str, value: str) -> None:
        """Type a value into the field of an attr."""
        self._field(attr).fill(value)

    def choose_attr(self, attr: str, value: str) -> None:
        """Choose a value from the list of an attr."""
        self._field(attr).select_option(value)

    def differentiate(self) -> None:
        """Press the gradient button."""
        self.root.locator("[data-differentiate]").click()

    def open_from(self, side: str, box: str) -> None:
        """Select a box and open the function it calls by the keyboard."""
        self.side(side).locator(f'[data-node-id="{box}"]').click()
        self.page.keyboard.press("o")

    def back_by_key(self) -> None:
        """Navigate one step back."""
        self.page.keyboard.press("Backspace")

    def go_to(self, crumb: str) -> None:
        """Press a breadcrumb."""
        self.root.locator("button.gl-crumb", has_text=crumb).first.click()

    def _field(self, attr: str) -> Locator:
        return self.root.locator(f'[data-attr="{attr}"]')
