"""Networks for first pictures: a U-Net and a detector as people write them in PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")
nn: Any = torch.nn


class DoubleConv(nn.Module):  # type: ignore[misc]  # torch is not imported by name
    def __init__(self, inner: int, outer: int) -> None:
        super().__init__()
        layers = [(nn.Conv2d(size, outer, 3, padding=1), nn.BatchNorm2d(outer), nn.ReLU()) for size in (inner, outer)]
        self.net = nn.Sequential(*layers[0], *layers[1])

    def forward(self, x: Any) -> Any:
        return self.net(x)


class Down(nn.Module):  # type: ignore[misc]  # as above
    def __init__(self, inner: int, outer: int) -> None:
        super().__init__()
        self.pool = nn.MaxPool2d(2)
        self.conv = DoubleConv(inner, outer)

    def forward(self, x: Any) -> Any:
        return self.conv(self.pool(x))


class Up(nn.Module):  # type: ignore[misc]  # as above
    def __init__(self, inner: int, outer: int) -> None:
        super().__init__()
        self.up = nn.ConvTranspose2d(inner, inner // 2, 2, 2)
        self.conv = DoubleConv(inner, outer)

    def forward(self, x: Any, skip: Any) -> Any:
        return self.conv(torch.cat([skip, self.up(x)], 1))


class UNet(nn.Module):  # type: ignore[misc]  # as above
    """Four steps down and four up, with a skip at each level."""

    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.inc = DoubleConv(3, width)
        for level in range(1, 5):
            self.add_module(f"down{level}", Down(width << (level - 1), width << level))
            self.add_module(f"up{level}", Up(width << (5 - level), width << (4 - level)))
        self.outc = nn.Conv2d(width, 2, 1)

    def forward(self, x: Any) -> Any:
        skips = [self.inc(x)]
        for level in range(1, 5):
            skips.append(getattr(self, f"down{level}")(skips[-1]))
        x = skips.pop()
        for level in range(1, 5):
            x = getattr(self, f"up{level}")(x, skips.pop())
        return self.outc(x)


class Conv(nn.Module):  # type: ignore[misc]  # as above
    def __init__(self, inner: int, outer: int, size: int = 1, stride: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inner, outer, size, stride, size // 2, bias=False)
        self.bn = nn.BatchNorm2d(outer)
        self.act = nn.SiLU()

    def forward(self, x: Any) -> Any:
        return self.act(self.bn(self.conv(x)))


class Bottleneck(nn.Module):  # type: ignore[misc]  # as above
    def __init__(self, width: int, is_residual: bool) -> None:
        super().__init__()
        self.cv1, self.cv2 = Conv(width, width, 3), Conv(width, width, 3)
        self.is_residual = is_residual

    def forward(self, x: Any) -> Any:
        y = self.cv2(self.cv1(x))
        return x + y if self.is_residual else y


class C2f(nn.Module):  # type: ignore[misc]  # as above
    """A stage of which each step is kept."""

    def __init__(self, inner: int, outer: int, count: int = 1, is_residual: bool = False) -> None:
        super().__init__()
        half = outer // 2
        self.cv1, self.cv2 = Conv(inner, outer), Conv((2 + count) * half, outer)
        self.m = nn.ModuleList([Bottleneck(half, is_residual) for _ in range(count)])

    def forward(self, x: Any) -> Any:
        parts = list(self.cv1(x).chunk(2, 1))
        for block in self.m:
            parts.append(block(parts[-1]))
        return self.cv2(torch.cat(parts, 1))


class SPPF(nn.Module):  # type: ignore[misc]  # as above
    """One pooling, three times."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.cv1, self.cv2 = Conv(width, width // 2), Conv(2 * width, width)
        self.m = nn.MaxPool2d(5, 1, 2)

    def forward(self, x: Any) -> Any:
        parts = [self.cv1(x)]
        for _ in range(3):
            parts.append(self.m(parts[-1]))
        return self.cv2(torch.cat(parts, 1))


class Detect(nn.Module):  # type: ignore[misc]  # as above
    """A head for each of three sizes."""

    def __init__(self, widths: tuple[int, ...], classes: int = 4) -> None:
        super().__init__()
        self.cv2, self.cv3 = [
            nn.ModuleList([nn.Sequential(Conv(width, 16, 3), Conv(16, 16, 3), nn.Conv2d(16, outer, 1)) for width in widths])
            for outer in (64, classes)
        ]

    def forward(self, scales: list[Any]) -> Any:
        found = [torch.cat([box(x), kind(x)], 1).flatten(2) for box, kind, x in zip(self.cv2, self.cv3, scales, strict=True)]
        box, kind = torch.cat(found, 2).split([64, found[0].shape[1] - 64], 1)
        share = box.view(box.shape[0], 4, 16, box.shape[2]).softmax(2)
        return torch.cat([share.mul(torch.arange(16.0).view(1, 1, 16, 1)).sum(2), kind.sigmoid()], 1)


class Detector(nn.Module):  # type: ignore[misc]  # as above
    """A backbone of C2f stages, SPPF, a neck that goes up and down, and three heads: the form of YOLOv8."""

    def __init__(self, c: int = 4) -> None:
        super().__init__()
        backbone = [
            Conv(3, c, 3, 2),
            Conv(c, 2 * c, 3, 2),
            C2f(2 * c, 2 * c, 1, True),
            Conv(2 * c, 4 * c, 3, 2),
            C2f(4 * c, 4 * c, 2, True),
        ]
        backbone += [Conv(4 * c, 8 * c, 3, 2), C2f(8 * c, 8 * c, 2, True), Conv(8 * c, 16 * c, 3, 2), C2f(16 * c, 16 * c, 1, True)]
        neck = [nn.Upsample(scale_factor=2), C2f(24 * c, 8 * c), nn.Upsample(scale_factor=2), C2f(12 * c, 4 * c)]
        neck += [Conv(4 * c, 4 * c, 3, 2), C2f(12 * c, 8 * c), Conv(8 * c, 8 * c, 3, 2), C2f(24 * c, 16 * c)]
        self.model = nn.ModuleList([*backbone, SPPF(16 * c), *neck, Detect((4 * c, 8 * c, 16 * c))])

    def forward(self, x: Any) -> Any:
        m, kept = self.model, []
        for module in m[:10]:
            x = module(x)
            kept.append(x)
        small, middle, large = kept[4], kept[6], kept[9]
        up = m[11](torch.cat([m[10](large), middle], 1))
        first = m[13](torch.cat([m[12](up), small], 1))
        second = m[15](torch.cat([m[14](first), up], 1))
        return m[18]([first, second, m[17](torch.cat([m[16](second), large], 1))])
