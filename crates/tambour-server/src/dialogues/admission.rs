//! Quota of a turn: counted at the request, refunded unless a model is asked.

use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;
use serde_json::Value;

use crate::app::App;
use crate::http::problem::Problem;
use crate::keys::Caller;
use crate::quotas::Limits;

/// Request counted against a key, refunded on drop unless the turn began.
pub(crate) struct Admission {
    app: Arc<App>,
    key: String,
    owner: String,
    limits: Arc<Limits>,
    begun: bool,
}

impl Admission {
    /// Counts a request, or refuses it.
    pub(crate) fn take(app: &Arc<App>, caller: &Caller) -> Result<Admission, Problem> {
        app.quotas.ask(caller, Instant::now(), Timestamp::now())?;
        let Caller { key, owner, limits, .. } = caller.clone();
        Ok(Admission { app: app.clone(), key, owner, limits, begun: false })
    }

    /// Spends the request: the turn goes on to a model.
    pub(crate) async fn begin(mut self) {
        self.begun = true;
        self.app.spent(&self.key, &self.owner, 1, &Value::Null).await;
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        if !self.begun {
            self.app.quotas.give_back(&self.key, &self.limits);
        }
    }
}
