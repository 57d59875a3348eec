//! `cargo xtask spec --prove`: requires that a fixture fails when its finding is removed.
//!
//! Each rule of the catalogue needs a proof on each row it names, and so does each code that the tables of
//! the specification require of a row. A proof is a fixture whose reply has a finding of that code on that
//! row, and which fails if the finding is removed.

use std::collections::BTreeSet;
use std::path::Path;

use tambour_fixtures::finding_lines::{catalogue_entry, read_dialect};
use tambour_fixtures::fixture::REQUIRES_LISTED_FINDINGS;
use tambour_fixtures::run::{ProfileReadings, compare};
use tambour_fixtures::{Fixture, FixtureReading};

use super::table::{RequirementLevel, SpecRow};
use super::{SpecScope, scan, table};

pub(super) fn run(root: &Path) -> anyhow::Result<()> {
    let scope = SpecScope::read(root)?;
    let mut rows = table::read_rows(root)?;
    rows.retain(|row| scope.contains(&row.id) && row.level != RequirementLevel::Later);
    let fixtures = scan::load_fixtures(root)?;
    let pairs = proof_pairs(&rows);
    let proofs = FixtureProofs::from_fixtures(&fixtures);
    let mut objections = Vec::new();
    for pair in &pairs {
        let Some(objection) = proofs.objection(pair) else { continue };
        if pair.is_required {
            objections.push(format!("{pair}: {objection}"));
        } else {
            println!("should: {pair}: {objection}");
        }
    }
    let unproven_count = objections.len();
    let rows_without_finding = rows.iter().filter(|row| row.forbids_finding);
    objections
        .extend(rows_without_finding.filter_map(|row| objection_to_row_without_finding(row, &fixtures)));
    objections.extend(fixtures.iter().flat_map(|fixture| objections_to_unasserted_rows(fixture, &rows)));
    let row_places = scan::read_places(root, &rows)?;
    objections.extend(
        super::find_gaps(&rows, &row_places).into_iter().map(|row| format!("{}: no test names it", row.id)),
    );
    for objection in proofs.broken.iter().chain(&objections) {
        println!("{objection}");
    }
    let required_count = pairs.iter().filter(|pair| pair.is_required).count();
    println!(
        "{} of {required_count} pairs of code and row are proven with {} fixtures",
        required_count - unproven_count,
        fixtures.len()
    );
    anyhow::ensure!(proofs.broken.is_empty(), "{} fixtures fail", proofs.broken.len());
    if REQUIRES_LISTED_FINDINGS {
        anyhow::ensure!(objections.is_empty(), "{} proofs are missing", objections.len());
    } else if !objections.is_empty() {
        println!("{} proofs are missing; fixtures do not list their findings yet", objections.len());
    }
    Ok(())
}

/// Code that needs a proof on a row.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ProofPair {
    row: String,
    pub(super) code: String,
    /// Rule table of the code; `None` if the specification's tables require it.
    pub(super) owner: Option<&'static str>,
    /// True if the row only repeats others: then a finding on any row proves it, in a fixture that names this
    /// row.
    is_repeated: bool,
    /// True if a missing proof is an error; otherwise it is only printed.
    is_required: bool,
}

impl std::fmt::Display for ProofPair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} `{}`", self.row, self.code)?;
        self.owner.map_or(Ok(()), |owner| write!(f, " ({owner})"))
    }
}

/// Lists all pairs: the codes of rules with those of their rows that are among `rows`, and the codes that the
/// rows themselves require.
pub(super) fn proof_pairs(rows: &[SpecRow]) -> BTreeSet<ProofPair> {
    let mut pairs = BTreeSet::new();
    for row in rows {
        let new_pair = |code: &str, owner, is_required| ProofPair {
            row: row.id.clone(),
            code: code.to_owned(),
            owner,
            is_repeated: row.is_repetition,
            is_required,
        };
        let mut catalogue_codes: BTreeSet<&str> = BTreeSet::new();
        for entry in
            tambour_prompt::catalogue::all().filter(|entry| entry.rule.rows.contains(&row.id.as_str()))
        {
            catalogue_codes.insert(entry.rule.code);
            pairs.insert(new_pair(entry.rule.code, Some(entry.owner), true));
        }
        let other_codes = row.codes.iter().filter(|code| !catalogue_codes.contains(code.as_str()));
        pairs.extend(other_codes.map(|code| new_pair(code, None, row.level == RequirementLevel::Must)));
    }
    pairs
}

/// Finding in the reply of a fixture.
#[derive(Debug)]
struct FixtureFinding {
    /// Rule table of the code; `None` if no rule table of the reading has the code on this row.
    pub(super) owner: Option<&'static str>,
    pub(super) code: String,
    /// Row that the finding is on.
    row: String,
    /// Rows that the fixture names.
    named_rows: Vec<String>,
    /// True if the fixture fails without the finding.
    is_needed: bool,
}

/// Findings of all fixtures.
#[derive(Debug, Default)]
pub(super) struct FixtureProofs {
    findings: Vec<FixtureFinding>,
    /// Messages about fixtures that fail as they are.
    pub(super) broken: Vec<String>,
}

impl FixtureProofs {
    /// Runs the fixtures, and again without each finding.
    pub(super) fn from_fixtures<'a>(fixtures: impl IntoIterator<Item = &'a Fixture>) -> FixtureProofs {
        let mut proofs = FixtureProofs::default();
        for fixture in fixtures {
            if let Err(error) =
                tambour_fixtures::run_fixture(fixture).and_then(|()| proofs.add_fixture(fixture))
            {
                proofs.broken.push(format!("fails as it is: {error}"));
            }
        }
        proofs
    }

    /// Adds the findings of a fixture that passes.
    fn add_fixture(&mut self, fixture: &Fixture) -> Result<(), String> {
        let readings = ProfileReadings::read(fixture)?;
        let dialect = read_dialect(&fixture.dialect, &readings.lenient);
        let codes_of = |reading: &FixtureReading| -> BTreeSet<(String, String)> {
            reading
                .findings
                .iter()
                .map(|finding| (finding.code.to_string(), finding.rule.to_string()))
                .collect()
        };
        for (code, row) in &codes_of(&readings.lenient) | &codes_of(&readings.strict) {
            self.findings.push(FixtureFinding {
                owner: catalogue_entry(dialect, &code, &row).map(|entry| entry.owner),
                is_needed: compare(fixture, &readings.without_finding(&code, &row)).is_err(),
                named_rows: fixture.spec.clone(),
                code,
                row,
            });
        }
        Ok(())
    }

    /// Returns the reason why a pair is not proven; `None` when it is.
    pub(super) fn objection(&self, pair: &ProofPair) -> Option<String> {
        if !tambour_prompt::catalogue::all().any(|entry| entry.rule.code == pair.code) {
            return Some("no rule table has the code".to_owned());
        }
        let code_findings: Vec<&FixtureFinding> = self
            .findings
            .iter()
            .filter(|finding| {
                finding.code == pair.code && (pair.owner.is_none() || finding.owner == pair.owner)
            })
            .collect();
        let is_on_row = |finding: &&&FixtureFinding| {
            finding.row == pair.row || (pair.is_repeated && finding.named_rows.contains(&pair.row))
        };
        let row_findings: Vec<&&FixtureFinding> = code_findings.iter().filter(is_on_row).collect();
        if row_findings.iter().any(|finding| finding.is_needed) {
            return None;
        }
        if !row_findings.is_empty() {
            return Some(format!(
                "{} fixtures read with the finding, none fails without it",
                row_findings.len()
            ));
        }
        let other_rows: BTreeSet<&str> = code_findings.iter().map(|finding| finding.row.as_str()).collect();
        let other_rows: Vec<&str> = other_rows.into_iter().collect();
        Some(match other_rows.as_slice() {
            [] => "no fixture reads with a finding of this code".to_owned(),
            _ if pair.is_repeated => {
                format!("no fixture with a finding of this code names the row ({})", other_rows.join(", "))
            }
            _ => format!("findings of this code are on {}, none on this row", other_rows.join(", ")),
        })
    }
}

/// Complains about rows that a fixture names without asserting anything about them.
pub(super) fn objections_to_unasserted_rows(fixture: &Fixture, rows: &[SpecRow]) -> Vec<String> {
    let named_rows = rows.iter().filter(|row| fixture.spec.contains(&row.id));
    let objections = named_rows.filter(|row| !scan::asserts_row(fixture, row)).map(|row| {
        let subject = if row.describes_output { "what comes out" } else { "findings" };
        format!("{} names {}, which is about {subject}, but asserts nothing about it", fixture.name, row.id)
    });
    objections.collect()
}

/// Returns the reason why a row that expects no finding is not proven; `None` when it is. Its proof is a
/// fixture that names the row and lists all findings, none of them on this row.
pub(super) fn objection_to_row_without_finding(row: &SpecRow, fixtures: &[Fixture]) -> Option<String> {
    let mut naming_fixtures = fixtures.iter().filter(|fixture| fixture.spec.contains(&row.id));
    let is_proof = |fixture: &Fixture| {
        let expectation = &fixture.expectation;
        // The third word of a line is the row.
        let lists_others_only = |list: &Option<Vec<String>>| {
            list.as_ref().is_some_and(|list| list.iter().all(|line| line.split(' ').nth(2) != Some(&row.id)))
        };
        lists_others_only(&expectation.findings)
            && (expectation.findings_strict.is_none() || lists_others_only(&expectation.findings_strict))
    };
    let is_proven = naming_fixtures.any(is_proof);
    let reason = "no finding is expected, and none of the fixtures that name it lists all findings";
    (!is_proven).then(|| format!("{}: {reason}", row.id))
}
