"""Jraph: a graph is a NamedTuple of arrays."""

import jax
import jax.numpy as jnp
import jraph
import numpy as np
import pytest

senders = np.array([0, 1, 2, 2], np.int32)
receivers = np.array([1, 2, 0, 1], np.int32)
nodes = np.linspace(-1, 1, 9, dtype=np.float32).reshape(3, 3)
weights = np.linspace(-1, 1, 6, dtype=np.float32).reshape(3, 2)


def convolve(nodes, weights, senders=senders, receivers=receivers):
    graph = jraph.GraphsTuple(
        nodes=nodes,
        edges=None,
        senders=jnp.asarray(senders),
        receivers=jnp.asarray(receivers),
        globals=None,
        n_node=jnp.array([3]),
        n_edge=jnp.array([4]),
    )
    layer = jraph.GraphConvolution(lambda n: jnp.tanh(n @ weights), add_self_edges=True)
    return layer(graph).nodes


@pytest.mark.export_compat
def test_forward(export_golden):
    export_golden(jax.jit(convolve), nodes, weights)


@pytest.mark.export_compat(vjp_order=1)
def test_gradient(export_golden):
    export_golden(jax.jit(convolve), nodes, weights)


@pytest.mark.export_compat
def test_random_key(export_golden):
    def drop_edges(nodes, weights, key):
        kept = jax.random.bernoulli(key, 0.5, senders.shape)
        return convolve(nodes, weights, jnp.where(kept, senders, receivers))

    export_golden(jax.jit(drop_edges), nodes, weights, jax.random.key(1))


@pytest.mark.export_compat(symbolic_shapes=(None, None, "e", "e"))
def test_symbolic_batch(export_golden):
    exported = export_golden(jax.jit(convolve), nodes, weights, senders, receivers)
    exported.also(nodes, weights, senders[:3], receivers[:3])


@pytest.mark.export_compat
def test_model_argument(export_golden):
    graph = jraph.GraphsTuple(
        nodes=nodes,
        edges=np.ones((4, 2), np.float32),
        senders=senders,
        receivers=receivers,
        globals=np.zeros((1, 2), np.float32),
        n_node=np.array([3], np.int32),
        n_edge=np.array([4], np.int32),
    )
    layer = jraph.GraphNetwork(
        update_edge_fn=lambda edges, sent, received, shared: edges + sent[:, :2] - received[:, :2],
        update_node_fn=lambda nodes, sent, received, shared: nodes + jnp.tanh(received[:, :1]),
        update_global_fn=lambda nodes, edges, shared: shared + edges,
    )
    export_golden(jax.jit(layer), graph)
