"""GIFs whose pictures carry their own number, for checks of players, and the number read back from a picture.

A picture has ten squares in two rows: a white one, a black one, and the bits of the picture's number, white for 1. A black, grey or
half-drawn picture has no number. Standard library only.
"""

import dataclasses

import gifs

COLUMNS, ROWS, SIDE = 5, 3, 16
WIDTH, HEIGHT = COLUMNS * SIDE, ROWS * SIDE
WHITE, BLACK, GROUND, NOTHING = 1, 0, 5, 7
# Columns of one pixel in these colours show what 4:2:0 takes, so AV1, WebM and AVIF are 4:4:4.
STRIPES = (2, 4)
# The colour of the page on which browsers show images and transparent videos.
PAGE = (20, 160, 90)


@dataclasses.dataclass
class Case:
    """A GIF and the truth about it, in seconds."""

    name: str
    # Hundredths of a second, at least two: players agree on these.
    delays: tuple
    isTransparent: bool = False
    # The loop count of the GIF: 0 is endless, 1 plays it twice.
    loop: int = 0
    isStriped: bool = False

    @property
    def starts(self):
        return [sum(self.delays[:at]) / 100 for at in range(len(self.delays))]

    @property
    def end(self):
        return sum(self.delays) / 100

    def gif(self):
        ground = NOTHING if self.isTransparent else GROUND
        images = []
        for number, delay in enumerate(self.delays):
            squares = [WHITE, BLACK, *(WHITE if number >> bit & 1 else BLACK for bit in range(7, -1, -1))]
            squares += [ground] * (COLUMNS * ROWS - len(squares))
            pixels = [squares[y // SIDE * COLUMNS + x // SIDE] for y in range(HEIGHT) for x in range(WIDTH)]
            if self.isStriped:
                pixels = [STRIPES[at % 2] if pixel == ground else pixel for at, pixel in enumerate(pixels)]
            images.append(gifs.image(0, 0, WIDTH, HEIGHT, pixels, delay, 2, NOTHING if self.isTransparent else None))
        return gifs.head(WIDTH, HEIGHT, loop=self.loop) + b"".join(images) + b";"


def cases():
    """One case for each thing that players do differently."""
    return [
        Case("delays", (3, 7, 2, 50, 11, 4, 133, 5, 20, 2, 9, 33)),
        Case("still", (20,)),
        # The longest delay of a GIF: almost eleven minutes.
        Case("long", (20, 65535, 30)),
        Case("many", (4,) * 250),
        Case("alpha", (30, 21, 42, 27, 15, 60), isTransparent=True),
        Case("colours", (30, 21, 42, 27), isStriped=True),
        Case("twice", (30, 21, 42, 27), isTransparent=True, loop=1),
    ]


def number(sample):
    """The number of a picture, or None. `sample` gives the brightness at a pixel (x, y), 0 to 255."""
    bits = []
    for square in range(10):
        left, top = square % COLUMNS * SIDE, square // COLUMNS * SIDE
        values = [sample(left + x, top + y) for y in range(5, 11) for x in range(5, 11)]
        mean = sum(values) / len(values)
        if 95 < mean < 160:
            return None
        bits.append(mean >= 160)
    if bits[:2] != [True, False]:
        return None
    return sum(bit << 7 - at for at, bit in enumerate(bits[2:]))


def ground_error(sample):
    """How far the squares without a meaning are from the page's colour, of 255 in the mean. `sample` gives the colour at a pixel."""
    squares = [(square % COLUMNS * SIDE + 8, square // COLUMNS * SIDE + 8) for square in range(10, COLUMNS * ROWS)]
    return sum(abs(part - wanted) for at in squares for part, wanted in zip(sample(*at), PAGE)) / (3 * len(squares))


def plane_number(plane, stride, step=1):
    """The number of the picture in a plane of bytes, of which every `step`-th of a row tells the brightness."""
    return number(lambda x, y: plane[y * stride + x * step])
