"""Jraph: a graph is a NamedTuple of arrays, here of 128 nodes and 512 edges."""

import jax
import jax.numpy as jnp
import jraph
import numpy as np
import pytest

from studies.corpus.programs.inputs import integers, normal

receivers, senders = integers(0, 512, high=128), integers(1, 512, high=128)
nodes, weights = normal(0, 128, 32), normal(1, 32, 32, scale=0.2)


def graph_of(nodes, edges=None, shared=None, senders=senders, receivers=receivers):
    count = np.array([128], np.int32), jnp.array([senders.shape[0]])
    return jraph.GraphsTuple(nodes, edges, jnp.asarray(receivers), jnp.asarray(senders), shared, *count)


def convolve(nodes, weights, senders=senders, receivers=receivers):
    layer = jraph.GraphConvolution(lambda n: jnp.tanh(n @ weights), add_self_edges=True)
    return layer(graph_of(nodes, senders=senders, receivers=receivers)).nodes


@pytest.mark.export_compat
def test_forward(export_golden):
    export_golden(jax.jit(convolve), nodes, weights)


@pytest.mark.export_compat(vjp_order=1)
def test_gradient(export_golden):
    """A layer of graph attention."""

    def layer(nodes, query, attention):
        gat = jraph.GAT(
            lambda n: n @ query,
            lambda sent, received, _: jax.nn.leaky_relu(jnp.concatenate([sent, received], -1) @ attention),
            lambda n: jax.nn.elu(n),
        )
        return gat(graph_of(nodes)).nodes

    export_golden(jax.jit(layer), nodes, weights, normal(2, 64, 1, scale=0.3))


@pytest.mark.export_compat
def test_random_key(export_golden):
    def drop_edges(nodes, weights, key):
        left = jax.random.bernoulli(key, 0.5, senders.shape)
        return convolve(nodes, weights, jnp.where(left, senders, receivers))

    export_golden(jax.jit(drop_edges), nodes, weights, jax.random.key(1))


@pytest.mark.export_compat(symbolic_shapes=(None, None, "e", "e"))
def test_symbolic_batch(export_golden):
    exported = export_golden(jax.jit(convolve), nodes, weights, senders, receivers)
    exported.also(nodes, weights, senders[:300], receivers[:300])


@pytest.mark.export_compat(vjp_order=1)
def test_model_argument(export_golden):
    """A layer with edges, nodes and the whole graph, each updated by a small network."""

    def layer(graph, edge_weights, node_weights, whole_weights):
        def dense(weights):
            return lambda *parts: jnp.tanh(jnp.concatenate(parts, -1) @ weights)

        return jraph.GraphNetwork(dense(edge_weights), dense(node_weights), dense(whole_weights))(graph)

    graph = graph_of(normal(3, 128, 16), normal(4, 512, 8), np.zeros((1, 8), np.float32))
    layers = [normal(n, *shape, scale=0.2) for n, shape in enumerate([(48, 8), (40, 16), (32, 8)])]
    export_golden(jax.jit(layer), graph, *layers)
