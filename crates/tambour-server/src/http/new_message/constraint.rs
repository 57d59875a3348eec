//! Constraint of a new message: its contract in the forms that servers take.

use std::sync::Arc;

use serde_json::json;
use tambour::Options;
use tambour::dialect;
use tambour::verdict::ContractForm;

use super::NewMessage;
use crate::base::problem::Problem;
use crate::http::app::App;
use crate::http::contracts::content_of;
use crate::tools::OfferedTool;
use crate::upstream::{Constrain, Constraint, ConstraintForms, Upstream};

impl NewMessage {
    /// Returns the contract to send along; `None` if it is not to be sent, or has no form. The field of the
    /// message, which may come from an alias, takes precedence over the upstream's. For a fallback, a contract that
    /// must be sent and cannot be is one without forms: an error only once the fallback is asked.
    ///
    /// # Errors
    /// The reply must be constrained, but its contract has no form or cannot be written.
    pub(super) async fn constraint(
        &self,
        (app, owner): (&App, &str),
        upstream: &Upstream,
        options: &Options,
        offered_tools: Option<&[OfferedTool]>,
        is_fallback: bool,
    ) -> Result<Option<Constraint>, Problem> {
        let is_required = match self.constrain.or(upstream.constrain()).unwrap_or_default() {
            Constrain::Off => return Ok(None),
            Constrain::Auto => false,
            Constrain::Required => true,
        };
        let forms = match self.constraint_forms((app, owner), options, offered_tools).await {
            Ok(forms) => forms,
            Err(problem) if is_required && !is_fallback => return Err(problem),
            Err(problem) => {
                tracing::debug!(detail = problem.detail(), "a contract is not sent along");
                // Calls of offered tools may be constrained without it.
                if !is_required && offered_tools.is_none() {
                    return Ok(None);
                }
                Arc::default()
            }
        };
        Ok(Some(Constraint { is_required, forms, replaces_format: false }))
    }

    /// Returns the forms of the contract.
    ///
    /// # Errors
    /// The contract has no form or cannot be written.
    async fn constraint_forms(
        &self,
        (app, owner): (&App, &str),
        options: &Options,
        offered_tools: Option<&[OfferedTool]>,
    ) -> Result<Arc<ConstraintForms>, Problem> {
        let entry = dialect::find_dialect(&self.dialect).ok();
        let Some(entry) = entry.filter(|entry| ContractForm::Gbnf.exists_for(entry)) else {
            let detail = format!(
                "the dialect `{}` has no form that a server could be given; name one that has, or take \
                 `constrain: auto`",
                self.dialect
            );
            return Err(Problem::invalid("invalid_field", detail).with("field", "constrain"));
        };
        let content = json!([
            entry.name,
            self.contract,
            self.skein,
            self.views,
            content_of(options, offered_tools),
            app.settings().values,
        ]);
        let forms =
            app.constraint_forms.forms((&app.cpu_pool, owner), &content, entry, options.clone()).await?;
        forms.map_err(|detail| Problem::invalid("grammar_impossible", detail))
    }
}
