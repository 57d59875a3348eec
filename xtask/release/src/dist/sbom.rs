//! Software bill of materials of the command: CycloneDX 1.5, from the dependency graph of Cargo.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use anyhow::Context;
use cyclonedx_bom::models::component::Classification;
use cyclonedx_bom::models::dependency::{Dependencies, Dependency};
use cyclonedx_bom::models::license::{LicenseChoice, Licenses};
use cyclonedx_bom::prelude::{
    Bom, Component, Components, DateTime, Metadata, NormalizedString, Purl, SpdxExpression, SpecVersion,
    Validate,
};
use serde_json::Value;

use super::Release;
use crate::{read_command, repository_root};

/// Package whose program is described.
const ROOT_PACKAGE: &str = "tambour-cli";

/// Name of the file.
pub(crate) fn file_name(version: &str) -> String {
    format!("tambour-{version}.cdx.json")
}

pub(super) fn make(release: &Release) -> anyhow::Result<()> {
    let mut cargo = Command::new("cargo");
    cargo.args(["metadata", "--format-version", "1", "--locked", "--filter-platform", &release.target]);
    let metadata: Value = serde_json::from_str(&read_command(cargo.current_dir(repository_root()))?)?;
    let bom = describe(&metadata, &release.version, release.time()?)?;
    let result = bom.validate_version(SpecVersion::V1_5);
    anyhow::ensure!(result.passed(), "{result:?}");
    let mut text = Vec::new();
    bom.output_as_json_v1_5(&mut text)?;
    text.push(b'\n');
    Ok(std::fs::write(release.out.join(file_name(&release.version)), text)?)
}

/// Describes the program with the packages that are linked into it: normal dependencies, no build scripts and
/// tests.
fn describe(metadata: &Value, version: &str, time: String) -> anyhow::Result<Bom> {
    let packages: BTreeMap<&str, &Value> = objects(&metadata["packages"])
        .filter_map(|package| Some((package["id"].as_str()?, package)))
        .collect();
    let nodes: BTreeMap<&str, &Value> = objects(&metadata["resolve"]["nodes"])
        .filter_map(|node| Some((node["id"].as_str()?, node)))
        .collect();
    let root = packages.values().find(|package| package["name"] == ROOT_PACKAGE);
    let root = root.and_then(|package| package["id"].as_str()).context("cargo metadata lists the command")?;
    let (mut found, mut pending) = (BTreeSet::from([root]), vec![root]);
    let mut dependencies = BTreeMap::new();
    while let Some(id) = pending.pop() {
        let linked: BTreeSet<&str> = objects(&nodes.get(id).context("a package has a node")?["deps"])
            .filter(|dependency| objects(&dependency["dep_kinds"]).any(|kind| kind["kind"].is_null()))
            .filter_map(|dependency| dependency["pkg"].as_str())
            .collect();
        pending.extend(linked.iter().copied().filter(|id| found.insert(*id)));
        dependencies
            .insert(reference(packages[id]), linked.iter().map(|id| reference(packages[id])).collect());
    }
    let mut components = Vec::new();
    for id in found.iter().filter(|id| **id != root) {
        components.push(component(packages[id], Classification::Library)?);
    }
    components.sort_by(|one, other| one.bom_ref.cmp(&other.bom_ref));
    let mut program = component(packages[root], Classification::Application)?;
    program.name = NormalizedString::new("tambour");
    program.version = Some(NormalizedString::new(version));
    Ok(Bom {
        // A random one would make each file another.
        serial_number: None,
        metadata: Some(Metadata {
            timestamp: Some(DateTime::try_from(time)?),
            component: Some(program),
            ..Metadata::default()
        }),
        components: Some(Components(components)),
        dependencies: Some(Dependencies(
            dependencies
                .into_iter()
                .map(|(dependency_ref, dependencies)| Dependency { dependency_ref, dependencies })
                .collect(),
        )),
        spec_version: SpecVersion::V1_5,
        ..Bom::default()
    })
}

/// Entry of a package.
fn component(package: &Value, kind: Classification) -> anyhow::Result<Component> {
    let text = |field: &str| package[field].as_str().unwrap_or_default();
    let (name, version) = (text("name"), text("version"));
    let mut component = Component::new(kind, name, version, Some(reference(package)));
    component.purl = Some(Purl::new("cargo", name, version)?);
    component.description = package["description"].as_str().map(NormalizedString::new);
    if let Some(license) = package["license"].as_str() {
        // Older packages write `/` for OR.
        let expression =
            SpdxExpression::parse_lax(license.to_owned()).with_context(|| format!("{name}: {license}"))?;
        component.licenses = Some(Licenses(vec![LicenseChoice::Expression(expression)]));
    }
    Ok(component)
}

/// Identity of a package within the file, free of paths of this machine.
fn reference(package: &Value) -> String {
    format!(
        "{}@{}",
        package["name"].as_str().unwrap_or_default(),
        package["version"].as_str().unwrap_or_default()
    )
}

fn objects(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::describe;

    #[test]
    fn only_linked_packages_are_listed() {
        let package =
            |name: &str| json!({"id": name, "name": name, "version": "1.0.0", "license": "MIT/Apache-2.0"});
        let dependency = |name: &str, kind: Option<&str>| json!({"pkg": name, "dep_kinds": [{"kind": kind}]});
        let packages = ["tambour-cli", "linked", "deep", "build", "test"].map(package);
        let metadata = json!({
            "packages": packages,
            "resolve": {"nodes": [
                {"id": "tambour-cli", "deps": [dependency("linked", None), dependency("build", Some("build")), dependency("test", Some("dev"))]},
                {"id": "linked", "deps": [dependency("deep", None)]},
                {"id": "deep", "deps": []},
                {"id": "build", "deps": []},
                {"id": "test", "deps": []},
            ]},
        });
        let bom = describe(&metadata, "0.1.0", "2026-01-01T00:00:00Z".to_owned()).unwrap();
        let mut text = Vec::new();
        bom.output_as_json_v1_5(&mut text).unwrap();
        let text: serde_json::Value = serde_json::from_slice(&text).unwrap();
        let names: Vec<&str> = text["components"]
            .as_array()
            .unwrap()
            .iter()
            .map(|part| part["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["deep", "linked"]);
        assert_eq!(text["metadata"]["component"]["name"], "tambour");
        assert_eq!(text["components"][0]["licenses"][0]["expression"], "MIT OR Apache-2.0");
    }
}
