//! Files of `packaging` and the release workflow, which other services run: linted as far as the machine can.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use serde_json::Value;

use super::{Outcome, tools_python};
use crate::dist::Release;
use crate::{find_program, read_command, repository_root};

/// Workflow of a release.
const WORKFLOW: &str = ".github/workflows/release.yml";

/// Folder of the chart.
const CHART: &str = "packaging/helm/tambour";

/// Checks the workflow against the schema of the service, and its actions and permissions.
pub(super) fn check_workflow(_: &Release) -> anyhow::Result<Outcome> {
    let path = repository_root().join(WORKFLOW);
    let mut schema = Command::new(tools_python()?);
    schema.args(["-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows"]);
    read_command(schema.arg(&path))?;
    let workflow: Value = read_yaml(&path)?;
    let faults = find_workflow_faults(&workflow);
    anyhow::ensure!(faults.is_empty(), "{}", faults.join("\n"));
    Ok(Outcome::Success(String::new()))
}

/// Faults of a workflow: actions that are not pinned to a commit, rights for all jobs, jobs without rights of
/// their own, and texts of an event in a script.
fn find_workflow_faults(workflow: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    if workflow["permissions"] != serde_json::json!({}) {
        faults.push("the workflow itself has permissions".to_owned());
    }
    for (name, job) in workflow["jobs"].as_object().into_iter().flatten() {
        if !job["permissions"].is_object() {
            faults.push(format!("{name} names no permissions"));
        }
        if job["timeout-minutes"].is_null() {
            faults.push(format!("{name} has no time limit"));
        }
        for step in job["steps"].as_array().into_iter().flatten() {
            if let Some(action) = step["uses"].as_str() {
                let commit = action.split_once('@').map(|(_, commit)| commit).unwrap_or_default();
                let is_pinned = commit.len() == 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
                if !is_pinned {
                    faults.push(format!("{name}: {action} is not pinned to a commit"));
                }
                if action.starts_with("actions/checkout@") && step["with"]["persist-credentials"] != false {
                    faults.push(format!("{name}: the checkout keeps its credentials"));
                }
            }
            if step["run"].as_str().is_some_and(|script| script.contains("${{")) {
                faults.push(format!("{name}: an expression in a script, which should be a variable"));
            }
        }
    }
    faults
}

/// Checks the syntax of the formula, as it is and as it was filled in.
pub(super) fn check_formula(release: &Release) -> anyhow::Result<Outcome> {
    let filled = release.out.join("tambour.rb");
    let text = std::fs::read_to_string(&filled)?;
    anyhow::ensure!(text.contains(&format!("version \"{}\"", release.version)), "{text}");
    if find_program("ruby").is_none() {
        return Ok(Outcome::Omission("its syntax needs ruby".to_owned()));
    }
    for path in [repository_root().join("packaging/homebrew/tambour.rb"), filled] {
        read_command(Command::new("ruby").arg("-wc").arg(path))?;
    }
    Ok(Outcome::Success(String::new()))
}

/// Checks the values of the chart against its schema, and with Helm the chart and what it renders.
pub(super) fn check_chart(release: &Release) -> anyhow::Result<Outcome> {
    let chart = repository_root().join(CHART);
    let mut schema = Command::new(tools_python()?);
    schema.args(["-m", "check_jsonschema", "--schemafile"]).arg(chart.join("values.schema.json"));
    read_command(schema.arg(chart.join("values.yaml")))?;
    for file in ["Chart.yaml", "values.yaml"] {
        read_yaml(&chart.join(file))?;
    }
    let Some(helm) = find_helm() else {
        return Ok(Outcome::Omission("templates need helm (values and schema agree)".to_owned()));
    };
    let packed = release.out.join(format!("helm/tambour-{}.tgz", release.version));
    for path in [&chart, &packed] {
        read_command(
            Command::new(&helm).args(["lint", "--strict"]).arg(path).args(["--set", "apiKey.secret=keys"]),
        )?;
    }
    let render = |values: &[&str]| {
        let mut template = Command::new(&helm);
        template.args(["template", "name"]).arg(&packed);
        for value in values {
            template.args(["--set", value]);
        }
        read_command(&mut template)
    };
    let single = render(&["apiKey.secret=keys"])?;
    for part in [
        "kind: PersistentVolumeClaim",
        "kind: StatefulSet",
        "runAsNonRoot: true",
        "path: /readyz",
        "path: /healthz",
    ] {
        anyhow::ensure!(single.contains(part), "the chart renders no `{part}`:\n{single}");
    }
    let cluster = render(&[
        "apiKey.secret=keys",
        "postgres.url=postgres://tambour@db/tambour",
        "postgres.secret=db",
        "replicas=3",
    ])?;
    for part in ["kind: Deployment", "kind: PodDisruptionBudget", "TAMBOUR_CLUSTER_PASSWORD_FILE"] {
        anyhow::ensure!(cluster.contains(part), "the chart with PostgreSQL renders no `{part}`:\n{cluster}");
    }
    anyhow::ensure!(!cluster.contains("PersistentVolumeClaim"), "PostgreSQL needs no volume");
    anyhow::ensure!(render(&[]).is_err(), "a chart without a key renders");
    anyhow::ensure!(render(&["apiKey.secret=keys", "replicas=2"]).is_err(), "two servers share one volume");
    anyhow::ensure!(render(&["apiKey.secret=keys", "nonsense=1"]).is_err(), "values have a schema");
    Ok(Outcome::Success(String::new()))
}

/// Helm, in the search path or as `TAMBOUR_HELM` names it.
fn find_helm() -> Option<PathBuf> {
    std::env::var_os("TAMBOUR_HELM").map(PathBuf::from).or_else(|| find_program("helm"))
}

fn read_yaml(path: &Path) -> anyhow::Result<Value> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    serde_saphyr::from_str(&text).with_context(|| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::find_workflow_faults;

    #[test]
    fn faults_of_workflows_are_found() {
        let pinned = format!("actions/cache@{}", "0a".repeat(20));
        let workflow = json!({
            "permissions": {},
            "jobs": {"build": {"permissions": {}, "timeout-minutes": 5, "steps": [{"uses": pinned}, {"run": "ls"}]}},
        });
        assert_eq!(find_workflow_faults(&workflow), Vec::<String>::new());
        let workflow = json!({
            "permissions": "write-all",
            "jobs": {"build": {"steps": [{"uses": "actions/checkout@v4"}, {"run": "echo ${{ github.ref }}"}]}},
        });
        assert_eq!(find_workflow_faults(&workflow).len(), 6);
    }
}
