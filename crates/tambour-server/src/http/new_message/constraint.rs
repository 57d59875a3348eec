//! Constraint of a new message: its contract in the forms that servers take.

use serde_json::json;
use tambour::Options;
use tambour::dialect::{self, DialectEntry};
use tambour::verdict::ContractForm;

use super::NewMessage;
use crate::base::problem::Problem;
use crate::http::app::App;
use crate::http::contracts::content_of;
use crate::tools::OfferedTool;
use crate::upstream::{Constrain, Constraint, ConstraintForms, Upstream};

impl NewMessage {
    /// Returns the contract to send along; `None` if it is not to be sent, or has no form. The field of the
    /// message, which may come from an alias, takes precedence over the upstream's.
    ///
    /// # Errors
    /// The reply must be constrained, but its contract has no form or cannot be written.
    pub(super) async fn constraint(
        &self,
        app: &App,
        owner: &str,
        upstream: &Upstream,
        options: &Options,
        offered_tools: Option<&[OfferedTool]>,
    ) -> Result<Option<Constraint>, Problem> {
        let is_required = match self.constrain.or(upstream.constrain()).unwrap_or_default() {
            Constrain::Off => return Ok(None),
            Constrain::Auto => false,
            Constrain::Required => true,
        };
        let entry = dialect::find_dialect(&self.dialect).ok();
        let Some(entry) = entry.filter(|entry| ContractForm::Gbnf.exists_for(entry)) else {
            if is_required {
                let detail = format!(
                    "the dialect `{}` has no form that a server could be given; name one that has, or take \
                     `constrain: auto`",
                    self.dialect
                );
                return Err(Problem::invalid("invalid_field", detail).with("field", "constrain"));
            }
            return Ok(None);
        };
        let content = json!([
            entry.name,
            self.contract,
            self.skein,
            self.views,
            content_of(options, offered_tools),
            app.settings().values,
        ]);
        let options = options.clone();
        let forms = app
            .constraint_forms
            .get((&app.cpu_pool, owner), &content, move || write_forms(entry, &options))
            .await;
        match forms {
            Ok(forms) => Ok(Some(Constraint { is_required, forms })),
            Err(problem) if is_required || problem.code() != "grammar_impossible" => Err(problem),
            Err(problem) => {
                tracing::debug!(detail = problem.detail(), "a contract is not sent along");
                Ok(None)
            }
        }
    }
}

/// Writes the forms of a contract; also returns their size in bytes.
fn write_forms(entry: &'static DialectEntry, options: &Options) -> Result<(ConstraintForms, usize), Problem> {
    let forms = ConstraintForms::of_contract(entry, options)
        .map_err(|error| Problem::invalid("grammar_impossible", error.to_string()))?;
    let forms = forms.unwrap_or_default();
    let size = forms.size();
    Ok((forms, size))
}
