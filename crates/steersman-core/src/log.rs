//! stub
/// Reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum ReasonCode { Prior, Model, History, IncumbentTie, Explore, Forced, Frozen, OnlyCandidate, FallbackAfterFailure, Threshold, SmallBatch, Extrapolated }

impl ReasonCode {
    /// All.
    pub const ALL: [ReasonCode; 12] = [ReasonCode::Prior, ReasonCode::Model, ReasonCode::History, ReasonCode::IncumbentTie, ReasonCode::Explore, ReasonCode::Forced, ReasonCode::Frozen, ReasonCode::OnlyCandidate, ReasonCode::FallbackAfterFailure, ReasonCode::Threshold, ReasonCode::SmallBatch, ReasonCode::Extrapolated];
}
