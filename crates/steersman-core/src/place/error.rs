//! What can be wrong with a placement problem, found while it is written down.

use super::NodeId;
use crate::Place;

/// Why a link table or a node was refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PlaceError {
    /// The number of places is outside what a graph can hold.
    #[error("a link table was made of {0} places; give between 1 and {max}", max = super::MAX_PLACES)]
    PlaceCount(usize),
    /// A place was listed twice.
    #[error("a link table lists {0} twice; list each place once")]
    TwicePlace(Place),
    /// A link whose times cannot be added up.
    #[error(
        "the link {from} to {to} has latency {latency} s and bandwidth {bandwidth} B/s; \
         give a latency of at least 0 and a bandwidth above 0"
    )]
    BadLink {
        /// Where it starts.
        from: Place,
        /// Where it ends.
        to: Place,
        /// Its latency in seconds.
        latency: f64,
        /// Its bandwidth in bytes per second.
        bandwidth: f64,
    },
    /// A node that can run nowhere, or a leaf held nowhere.
    #[error("node {0} has no possible place; list at least one place with its cost")]
    NoPlace(NodeId),
    /// A place that the link table does not know.
    #[error("node {node} names {place}, which has no links; add it to the link table")]
    UnknownPlace {
        /// The node.
        node: NodeId,
        /// The place it named.
        place: Place,
    },
    /// A cost that cannot be added up.
    #[error(
        "node {node} costs {cost} s on {place}; give a finite cost of at least 0, or leave the place out"
    )]
    BadCost {
        /// The node.
        node: NodeId,
        /// The place.
        place: Place,
        /// The cost in seconds.
        cost: f64,
    },
    /// An input that does not come before its consumer: nodes are not in order, or form a cycle.
    #[error("node {node} takes node {input}, which does not come before it; add nodes after their inputs")]
    Order {
        /// The consumer.
        node: NodeId,
        /// The input.
        input: NodeId,
    },
    /// A result was asked of a node that does not exist.
    #[error("node {0} is wanted but does not exist; want a node that was added")]
    UnknownNode(NodeId),
}
