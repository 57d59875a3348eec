//! Quota of a turn: counted at the request, refunded if the turn does not begin.

use std::sync::Arc;

use serde_json::Value;

use crate::base::problem::Problem;
use crate::run::engine::RunEngine;
use crate::run::keys::Caller;
use crate::run::quotas::KeyLimits;

/// Request counted against a key; refunded on drop unless it is spent.
pub(crate) struct TurnQuota {
    engine: Arc<RunEngine>,
    key: String,
    owner: String,
    limits: Arc<KeyLimits>,
    /// Set once the turn has begun.
    is_spent: bool,
}

impl TurnQuota {
    /// Counts a request, or refuses it.
    pub(crate) async fn reserve(engine: &Arc<RunEngine>, caller: &Caller) -> Result<TurnQuota, Problem> {
        engine.admit_request(caller).await?;
        let Caller { key, owner, limits, .. } = caller.clone();
        Ok(TurnQuota { engine: engine.clone(), key, owner, limits, is_spent: false })
    }

    /// Spends the request: the turn has taken its input and begins.
    pub(crate) async fn spend(mut self) {
        self.is_spent = true;
        // Counts the request; its tokens are charged once the model has replied.
        self.engine.charge_key(&self.key, &self.owner, 1, &Value::Null).await;
    }
}

impl Drop for TurnQuota {
    fn drop(&mut self) {
        if !self.is_spent {
            self.engine.refund_request(&self.key, &self.limits);
        }
    }
}
