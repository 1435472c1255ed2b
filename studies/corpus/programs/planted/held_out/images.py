"""Images and geometry: warps on computed grids, filters with computed kernels, and derivatives of both."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.ndimage import map_coordinates

from studies.corpus.programs.inputs import integers, normal, uniform
from studies.corpus.programs.program import CONSTANT, DROPPED, EPSILON, OFF_BY_ONE, Program


def _grid(rows, columns):
    """Return the coordinates of pixels, from -1 to 1, as rows and columns."""
    return jnp.meshgrid(jnp.linspace(-1, 1, rows), jnp.linspace(-1, 1, columns), indexing="ij")


def _pixels(y, x, rows, columns):
    return [(y + 1) * 0.5 * (rows - 1), (x + 1) * 0.5 * (columns - 1)]


def _rendered(rows, columns):
    """Return an image that the program computes: two waves and a bump."""
    y, x = _grid(rows, columns)
    return jnp.sin(7 * x + 1.3) * jnp.cos(5 * y - 0.4) + jnp.exp(-4 * ((x - 0.3) ** 2 + (y + 0.2) ** 2))


def _rotated(image, angle, order=1):
    y, x = _grid(*image.shape)
    cos, sin = jnp.cos(angle), jnp.sin(angle)
    return map_coordinates(
        image, _pixels(cos * y - sin * x, sin * y + cos * x, *image.shape), order=order, mode="constant"
    )


def rotated_image(image, *, degrees=33.0):
    return _rotated(image, jnp.deg2rad(degrees))


def rotation_gradients(image, cotangent, *, degrees=33.0):
    """The gradients of a rotated image with respect to the pixels and to the angle."""
    _, back = jax.vjp(_rotated, image, jnp.deg2rad(degrees))
    return back(cotangent)


def rotations_of_a_rendered_image(*, first=12.5, order=1):
    """Three rotations of a computed image, without arguments."""
    angles = jnp.deg2rad(jnp.array([first, 45.0, 100.0]))
    return jax.vmap(lambda angle: _rotated(_rendered(18, 22), angle, order))(angles)


def affine_of_bytes(image, *, shear=0.23, shift=0.11):
    """A warped grey image; an image of bytes is the only argument."""
    grey = image.astype(jnp.float32) @ jnp.array([0.299, 0.587, 0.114]) / 255
    y, x = _grid(*grey.shape)
    return map_coordinates(
        grey, _pixels(1.1 * y + shear * x - shift, 0.9 * x - 0.17 * y, *grey.shape), order=1, mode="nearest"
    )


def homography_of_bytes(image, *, tilt=0.17):
    matrix = jnp.array([[1.02, 0.08, -0.03], [-0.05, 0.97, 0.04], [tilt, -0.11, 1.0]])
    y, x = _grid(*image.shape)
    u, v, w = jnp.einsum("ij,jyx->iyx", matrix, jnp.stack([x, y, jnp.ones_like(x)]))
    return map_coordinates(
        image.astype(jnp.float32) / 127.5 - 1, _pixels(v / w, u / w, *image.shape), order=1, mode="constant"
    )


def homography_gradient(matrix, *, rows=16):
    """The gradient, in a projective transformation, of the mean square between a computed image and its warp."""

    def loss(matrix):
        image = _rendered(rows, 20)
        y, x = _grid(rows, 20)
        u, v, w = jnp.einsum("ij,jyx->iyx", matrix, jnp.stack([x, y, jnp.ones_like(x)]))
        return jnp.mean((map_coordinates(image, _pixels(v / w, u / w, rows, 20), order=1, mode="nearest") - image) ** 2)

    return jax.value_and_grad(loss)(matrix)


def homography_from_corners(corners, *, offset=0.0):
    """The projective transformation between the corners of two quadrilaterals, by eight linear equations."""
    there = jnp.array([[0, 0], [0, 1], [1, 0], [1, 1]], jnp.float32)
    rows = []
    for number in range(4):
        (x, y), (u, v) = there[number], corners[number] + offset
        rows += [
            jnp.stack([x, y, 1.0, 0.0, 0.0, 0.0, -u * x, -u * y]),
            jnp.stack([0.0, 0.0, 0.0, x, y, 1.0, -v * x, -v * y]),
        ]
    return jnp.linalg.solve(jnp.stack(rows), (corners + offset).ravel())


def lanczos_downsampling(image, *, antialias=True):
    return jax.image.resize(image, (11, 13), "lanczos3", antialias=antialias)


def cubic_resize_gradient(image, *, rows=19):
    """A loss of a resized image, and its gradient, which resizes back."""
    return jax.value_and_grad(lambda image: jnp.sum(jnp.tanh(jax.image.resize(image, (rows, 31), "cubic")) ** 2))(image)


def _gaussian(size, sigma):
    x = jnp.arange(size) - (size - 1) / 2
    kernel = jnp.exp(-0.5 * (x / sigma) ** 2)
    return kernel / jnp.sum(kernel)


def _convolved(image, kernel):
    return lax.conv_general_dilated(image[None, None], kernel[None, None], (1, 1), "SAME")[0, 0]


def difference_of_gaussians(*, sigma=1.6):
    """The difference of two blurs of a computed image, which is small beside either, without arguments."""
    image = _rendered(26, 26)
    narrow, wide = _gaussian(9, 1.0), _gaussian(9, sigma)
    return _convolved(image, jnp.outer(narrow, narrow)) - _convolved(image, jnp.outer(wide, wide))


def edges_of_bytes(image, *, epsilon=1e-4):
    """The magnitude and the direction of Sobel edges."""
    grey = image.astype(jnp.float32) / 255
    sobel = jnp.array([[1, 0, -1], [2, 0, -2], [1, 0, -1]], jnp.float32)
    across, down = _convolved(grey, sobel), _convolved(grey, sobel.T)
    return jnp.sqrt(across**2 + down**2 + epsilon), jnp.arctan2(down, across + 0.37)


def optical_flow(*, shift=0.35, ridge=1e-3):
    """One step of Lucas and Kanade's optical flow between a computed image and its rotation, without arguments."""
    image = _rendered(20, 20)
    later = _rotated(image, jnp.deg2rad(shift * 10))
    dy, dx = jnp.gradient(image)
    dt = later - image
    mean = lambda a: _convolved(a, jnp.full((5, 5), 0.04))
    yy, xx, xy, yt, xt = mean(dy * dy) + ridge, mean(dx * dx) + ridge, mean(dx * dy), mean(dy * dt), mean(dx * dt)
    determinant = yy * xx - xy**2
    return (xy * yt - yy * xt) / determinant, (xy * xt - xx * yt) / determinant


def polar_image(image, *, power=1.7):
    """An image in polar coordinates, with radii in geometric and angles in equal steps."""
    rows, columns = image.shape
    radius = power ** jnp.linspace(0, 4, 12)
    angle = jnp.linspace(0, 2 * jnp.pi, 24, endpoint=False)
    y = (rows - 1) / 2 + radius[:, None] * jnp.sin(angle)
    x = (columns - 1) / 2 + radius[:, None] * jnp.cos(angle)
    return map_coordinates(image, [y, x], order=1, mode="reflect")


def nearest_pixels_of_a_lens(image, *, bend=0.21):
    """An image bent by a lens: each place takes the nearest pixel, which jumps at a small change of the place."""
    y, x = _grid(24, 24)
    square = x**2 + y**2
    factor = 1 + bend * square - 0.07 * square**2
    return map_coordinates(image, _pixels(factor * y * 0.8, factor * x * 0.8, *image.shape), order=0, mode="nearest")


def spline_registration_gradient(offsets, *, strength=0.15):
    """The gradient of an image registration, in a field of offsets that is resized to the image."""

    def loss(offsets):
        field = jax.image.resize(offsets, (2, 18, 18), "cubic") * strength
        y, x = _grid(18, 18)
        moved = map_coordinates(_rendered(18, 18), _pixels(y + field[0], x + field[1], 18, 18), order=1, mode="nearest")
        bends = jnp.diff(offsets, n=2, axis=1)
        return jnp.mean((moved - _rendered(18, 18).T) ** 2) + 0.01 * jnp.sum(bends**2)

    return jax.grad(loss)(offsets)


_IMAGE = normal(501, 24, 20)
_BYTES = integers(502, 20, 24, high=256).astype(np.uint8)
_CORNERS = np.array([[0.1, 0.05], [0.02, 0.93], [1.1, 0.08], [0.95, 1.07]], np.float32)
_NEARLY = (np.eye(3) + 0.07 * np.random.RandomState(503).standard_normal((3, 3))).astype(np.float32)

PROGRAMS = (
    Program(rotated_image, (_IMAGE,), {CONSTANT: {"degrees": 33.0003}}),
    Program(rotation_gradients, (_IMAGE, normal(504, 24, 20)), {CONSTANT: {"degrees": 33.0003}}),
    Program(rotations_of_a_rendered_image, (), {CONSTANT: {"first": 12.50012}, OFF_BY_ONE: {"order": 0}}),
    Program(affine_of_bytes, (integers(505, 22, 26, 3, high=256).astype(np.uint8),), {CONSTANT: {"shear": 0.230002}, DROPPED: {"shift": 0.0}}),
    Program(homography_of_bytes, (_BYTES,), {CONSTANT: {"tilt": 0.170002}}),
    Program(homography_gradient, (_NEARLY,), {}),
    Program(homography_from_corners, (_CORNERS,), {CONSTANT: {"offset": 2e-6}}, lapack=True),
    Program(lanczos_downsampling, (_IMAGE,), {DROPPED: {"antialias": False}}),
    Program(cubic_resize_gradient, (_IMAGE,), {OFF_BY_ONE: {"rows": 20}}),
    Program(difference_of_gaussians, (), {CONSTANT: {"sigma": 1.600016}}),
    Program(edges_of_bytes, (_BYTES,), {EPSILON: {"epsilon": 0.0}}),
    Program(optical_flow, (), {CONSTANT: {"shift": 0.3500035}, EPSILON: {"ridge": 0.0}}),
    Program(polar_image, (_IMAGE,), {CONSTANT: {"power": 1.700017}}),
    Program(nearest_pixels_of_a_lens, (uniform(506, 24, 24),), {OFF_BY_ONE: {"bend": 0.3}}, jumps=True),
    Program(spline_registration_gradient, (normal(507, 2, 5, 5),), {CONSTANT: {"strength": 0.1500015}}),
)  # fmt: skip
