"""The models of the workload `network`, as sequences of operations, with the scale of their initial parameters.

Spiking-ResNets are those of SpikingJelly (spikingjelly/activation_based/model/spiking_resnet.py): a convolution of 7 by
7 with stride 2, a maximum pool, four stages of residual blocks whose last neuron comes after the addition, the mean
over all places, and a linear layer. The SEW-ResNet is that of sew_resnet.py there, with the connection ADD: the last
neuron of a block comes before the addition, so numbers of spikes enter the next block. `vgg` has pairs of convolutions
of 3 by 3 before each pool, and `convolutional` has two single ones. `spikformer` is a small Spikformer (Zhou et al.
2023): two convolutions with pools make the places of 4 by 4 pixels that attend to each other in two blocks.

Every site of neurons must fire, or a wrong one could pass. So the variance of each current is counted, not measured, by
the mean square of what enters. It is SPREAD thresholds squared, and where spikes are added as they are, the bias takes
their mean off. A sum over a kernel has a term for each entry that does not read a zero beside the image. That decides
in deep stages, whose images have a single place.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from math import log2
from typing import Any

from snnbench.cases.operations import INPUT, Attention, Average, Linear, Neurons, Normalisation, Operation, Sum
from snnbench.cases.windows import Convolution, MaximumPool

SPREAD = 1.5
"""Standard deviation of a current, in thresholds."""
RATE = 0.25
"""The spikes per step that are counted with, at every site."""
EXACT: dict[str, Any] = {"variance": 1.0, "epsilon": 0.0}
"""Statistics that leave a value as it is."""
NEIGHBOURS = 5
"""Places of a window of 3 by 3 that count as independent, for the rate after a pool: neighbours are alike."""


@dataclass(frozen=True, slots=True)
class Model:
    """The operations, and for each normalisation the share of a current's variance and its mean, in thresholds.

    `most` are the most spikes that enter a convolution at one place and step, if it is more than one.
    """

    operations: tuple[Operation, ...]
    shares: dict[str, float]
    offsets: dict[str, float]
    most: dict[str, int]

    @property
    def neurons(self) -> int:
        """The number of neurons at all sites."""
        return sum(operation.count for operation in self.operations if isinstance(operation, Neurons))


@lru_cache(maxsize=8)
def model(name: str, image: tuple[int, int], width: int, classes: int, rate: float, frozen: bool, exact: bool) -> Model:
    """A model for images of (channels, side) with `rate` spikes a step, `width` channels in its first stage.

    With `frozen` statistics the variance of each normalisation is the counted one, and 1 in an `exact` model. The
    parameters are all that the operations depend on, and so the key of the cache.
    """
    parts = _Parts(*image, rate, frozen, exact)
    MODELS[name](parts, width)
    parts.add(Average, "average", shape=(parts.channels,))
    parts.add(Linear, "classifier", shape=(classes,), inputs=parts.channels)
    return Model(tuple(parts.operations), parts.shares, parts.offsets, parts.entering)


@dataclass(slots=True)
class _Parts:
    """The operations so far. The last has so many `channels`, images of `side` x `side` places, and a firing `rate`.

    Its values are 0 and 1 unless spikes were added: then up to `most`, with a mean `square`.
    """

    channels: int
    side: int
    rate: float
    frozen: bool
    exact: bool
    most: int = 1
    square: float = 0.0
    operations: list[Operation] = field(default_factory=list)
    shares: dict[str, float] = field(default_factory=dict)
    offsets: dict[str, float] = field(default_factory=dict)
    entering: dict[str, int] = field(default_factory=dict)

    @property
    def last(self) -> str:
        """The name of the last operation."""
        return self.operations[-1].name if self.operations else INPUT

    @property
    def counted(self) -> tuple[str, float, int, float]:
        """The last value, its rate, the most spikes at a place and their mean square."""
        return self.last, self.rate, self.most, self.square if self.most > 1 else self.rate

    @property
    def shape(self) -> tuple[int, int, int]:
        """The shape of the last value."""
        return self.channels, self.side, self.side

    def add(self, kind: type[Operation], name: str, of: Sequence[str] = (), **more: object) -> str:
        """Add an operation of the last value, or of those named."""
        options = {"shape": self.shape} | more
        self.operations.append(kind(name=name, of=tuple(of) or (self.last,), **options))  # type: ignore[arg-type]
        return name

    def convolve(
        self,
        name: str,
        channels: int,
        size: int,
        stride: int = 1,
        share: float = 1.0,
        offset: float = 0.0,
        of: Sequence[str] = (),
    ) -> str:
        """Add a convolution and its normalisation, which gives a `share` of a current's variance, and its mean.

        The parameters are those of both.
        """
        padding, inputs, side = size // 2, self.channels, self.side
        starts = range(0, side + 2 * padding - size + 1, stride)
        inside = [sum(padding <= start + entry < side + padding for entry in range(size)) / size for start in starts]
        variance = (self.rate if self.most == 1 else self.square) * (sum(inside) / len(inside)) ** 2
        self.channels, self.side = channels, len(starts)
        by_axis = {"size": size, "stride": stride, "padding": padding, "dilation": 1}
        options = {option: (number, number) for option, number in by_axis.items()}
        self.add(Convolution, f"{name} convolution", of, inputs=inputs, **options)
        self.entering |= {self.last: self.most} if self.most > 1 else {}
        statistics: dict[str, Any] = {"variance": variance} if self.frozen else {}
        self.add(Normalisation, f"{name} normalisation", (), **EXACT if self.exact else statistics)
        self.shares[self.last], self.offsets[self.last] = share, offset
        return self.last

    def fire(self, name: str) -> None:
        """Add a site of neurons."""
        self.add(Neurons, f"{name} neurons")
        self.rate, self.most = RATE, 1

    def pool(self, name: str, size: int, stride: int) -> None:
        """Add a maximum pool."""
        padding = (size - 1) // 2
        self.side = (self.side + 2 * padding - size) // stride + 1
        self.add(MaximumPool, name, size=size, stride=stride, padding=padding)
        self.rate = 1 - (1 - self.rate) ** min(NEIGHBOURS, size**2)


def _residual(
    blocks: tuple[int, ...], add_block: Callable[[_Parts, str, int, int], None]
) -> Callable[[_Parts, int], None]:
    """The stem and the stages of a residual network. `add_block` gets the parts, a name, a width and a stride."""

    def build(parts: _Parts, width: int) -> None:
        parts.convolve("stem", width, 7, 2)
        parts.fire("stem")
        parts.pool("stem pool", 3, 2)
        for stage, count in enumerate(blocks):
            for number in range(count):
                stride = 2 if stage and not number else 1
                add_block(parts, f"stage {stage + 1} block {number + 1}", width << stage, stride)

    return build


def _block(parts: _Parts, name: str, width: int, stride: int, expansion: int) -> None:
    entering, channels, side, rate = parts.last, parts.channels, parts.side, parts.rate
    sizes = [3, 3] if expansion == 1 else [1, 3, 1]
    widths = [width] * (len(sizes) - 1) + [expansion * width]
    projects = stride != 1 or channels != widths[-1]
    for number, (size, out) in enumerate(zip(sizes, widths, strict=True), start=1):
        is_last = number == len(sizes)
        share, offset = (0.5 if projects else 1.0, 0.0 if projects else -rate) if is_last else (1.0, 0.0)
        strided = stride if number == (1 if expansion == 1 else 2) else 1
        parts.convolve(f"{name} {number}", out, size, strided, share, offset)
        if not is_last:
            parts.fire(f"{name} {number}")
    branch, shortcut = parts.last, entering
    if projects:
        parts.channels, parts.side, parts.rate = channels, side, rate
        shortcut = parts.convolve(f"{name} shortcut", widths[-1], 1, stride, share=0.5, of=[entering])
    parts.add(Sum, f"{name} sum", (branch, shortcut))
    parts.fire(name)


def _sew_block(parts: _Parts, name: str, width: int, stride: int) -> None:
    entering, channels, side = parts.last, parts.channels, parts.side
    rate, most, square = parts.rate, parts.most, parts.square if parts.most > 1 else parts.rate
    for number in (1, 2):
        parts.convolve(f"{name} {number}", width, 3, stride if number == 1 else 1)
        parts.fire(f"{name} {number}")
    branch, shortcut = parts.last, entering
    if stride != 1 or channels != width:
        parts.channels, parts.side, parts.rate, parts.most, parts.square = channels, side, rate, most, square
        parts.convolve(f"{name} shortcut", width, 1, stride, of=[entering])
        parts.fire(f"{name} shortcut")
        shortcut, rate, most, square = parts.last, RATE, 1, RATE
    parts.add(Sum, f"{name} sum", (branch, shortcut))
    parts.most, parts.square = most + 1, RATE + square + 2 * RATE * rate
    parts.rate = RATE + rate


def _plain(groups: tuple[tuple[int, ...], ...]) -> Callable[[_Parts, int], None]:
    """Groups of convolutions of 3 x 3, each with its multiple of the width, and a pool after each group."""

    def build(parts: _Parts, width: int) -> None:
        for group, multiples in enumerate(groups, start=1):
            for number, multiple in enumerate(multiples, start=1):
                parts.convolve(f"group {group} {number}", multiple * width, 3)
                parts.fire(f"group {group} {number}")
            parts.pool(f"group {group} pool", 2, 2)

    return build


def _spikformer(parts: _Parts, width: int) -> None:
    """Patches, their positions, and two blocks of self-attention and a perceptron, whose spikes are added."""
    for number, multiple in enumerate((1, 2), start=1):
        parts.convolve(f"patches {number}", multiple * width, 3)
        parts.fire(f"patches {number}")
        parts.pool(f"patches {number} pool", 2, 2)
    _added(parts, "positions", lambda: _layer(parts, "positions", parts.channels, 3))
    for block in (1, 2):
        _added(parts, f"block {block} attention", partial(_attention, parts, f"block {block}"))
        _added(parts, f"block {block} perceptron", partial(_perceptron, parts, f"block {block} perceptron"))


def _added(parts: _Parts, name: str, branch: Callable[[], None]) -> None:
    """A branch whose spikes are added to what enters it."""
    entering, rate, most, square = parts.counted
    branch()
    parts.add(Sum, f"{name} sum", (parts.last, entering))
    parts.most, parts.square = most + 1, RATE + square + 2 * RATE * rate
    parts.rate = RATE + rate


def _layer(parts: _Parts, name: str, channels: int, size: int) -> None:
    parts.convolve(name, channels, size)
    parts.fire(name)


def _perceptron(parts: _Parts, name: str) -> None:
    channels = parts.channels
    _layer(parts, f"{name} 1", EXPANSION * channels, 1)
    _layer(parts, f"{name} 2", channels, 1)


def _attention(parts: _Parts, name: str) -> None:
    (entering, rate, most, square), channels = parts.counted, parts.channels
    for part in ("queries", "keys", "values"):
        parts.rate, parts.most, parts.square = rate, most, square
        parts.convolve(f"{name} {part}", channels, 1, of=[entering])
        parts.fire(f"{name} {part}")
    heads = max(1, channels // CHANNELS_OF_HEAD)
    scale = ATTENDED / (parts.side**2 * channels / heads * RATE**3)
    scale = 2.0 ** (round(log2(scale)) - 2) if parts.exact else scale
    of = [f"{name} {part} neurons" for part in ("queries", "keys", "values")]
    parts.add(Attention, f"{name} attention", of, heads=heads, scale=scale)
    parts.fire(f"{name} attention")
    _layer(parts, f"{name} projection", channels, 1)


EXPANSION = 4
"""Channels of a perceptron's hidden layer, for each that enters."""
CHANNELS_OF_HEAD = 16
ATTENDED = 0.69
"""The mean current of neurons behind an attention, for neurons that each fire at the rate RATE.

The exam has about a quarter of it, because such a current may be many times its mean, and a power of two. Elsewhere a
power of two would put potentials at the threshold, where some libraries fire and others do not.
"""
MODELS: dict[str, Callable[[_Parts, int], None]] = {
    "spiking-resnet18": _residual((2, 2, 2, 2), partial(_block, expansion=1)),
    "spiking-resnet34": _residual((3, 4, 6, 3), partial(_block, expansion=1)),
    "spiking-resnet50": _residual((3, 4, 6, 3), partial(_block, expansion=4)),
    "sew-resnet18": _residual((2, 2, 2, 2), _sew_block),
    "spikformer": _spikformer,
    "vgg": _plain(((1, 1), (2, 2), (4, 4))),
    "convolutional": _plain(((1,), (2,))),
}
