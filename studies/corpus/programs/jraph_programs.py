"""Jraph and e3nn: layers of graph networks on 128 nodes and 512 edges; equivariant products."""

import e3nn_jax as e3nn
import jax
import jax.numpy as jnp
import jraph
import numpy as np
import pytest

from studies.corpus.programs.normal import normal, whole

senders, receivers = whole(0, 128, 512), whole(1, 128, 512)


def graph_of(nodes, edges, shared=None):
    count = np.array([128], np.int32), np.array([512], np.int32)
    return jraph.GraphsTuple(nodes, edges, jnp.asarray(receivers), jnp.asarray(senders), shared, *count)


@pytest.mark.export_compat(vjp_order=1)
def test_graph_network(export_golden):
    """A layer with edges, nodes and the whole graph, each updated by a small network."""

    def layer(nodes, edges, edge_weights, node_weights, whole_weights):
        def dense(weights):
            return lambda *parts: jnp.tanh(jnp.concatenate(parts, -1) @ weights)

        network = jraph.GraphNetwork(dense(edge_weights), dense(node_weights), dense(whole_weights))
        graph = network(graph_of(nodes, edges, jnp.zeros((1, 8))))
        return graph.nodes, graph.edges, graph.globals

    weights = [normal(n, *shape, scale=0.2) for n, shape in enumerate([(48, 8), (40, 16), (32, 8)])]
    export_golden(jax.jit(layer), normal(3, 128, 16), normal(4, 512, 8), *weights)


@pytest.mark.export_compat(vjp_order=1)
def test_graph_attention(export_golden):
    def layer(nodes, query, attention):
        gat = jraph.GAT(
            lambda n: n @ query,
            lambda sent, received, _: jax.nn.leaky_relu(jnp.concatenate([sent, received], -1) @ attention),
            lambda n: jax.nn.elu(n),
        )
        return gat(graph_of(nodes, None)).nodes

    export_golden(jax.jit(layer), normal(0, 128, 32), normal(1, 32, 32, scale=0.2), normal(2, 64, 1, scale=0.3))


@pytest.mark.export_compat(vjp_order=1)
def test_equivariant_messages(export_golden):
    """Tensor products of features with spherical harmonics, summed over neighbours."""

    def layer(places, features):
        apart = places[receivers] - places[senders]
        harmonics = e3nn.spherical_harmonics("0e + 1o + 2e", e3nn.IrrepsArray("1o", apart), normalize=True)
        sent = e3nn.IrrepsArray("8x0e + 4x1o", features)[senders]
        messages = e3nn.tensor_product(sent, harmonics, filter_ir_out=["0e", "1o"])
        return e3nn.scatter_sum(messages, dst=jnp.asarray(receivers), output_size=128).array[:, :32] / 2

    export_golden(jax.jit(layer), normal(0, 128, 3), normal(1, 128, 20))
