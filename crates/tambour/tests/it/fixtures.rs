//! Every fixture gives its recorded result under every cutting.

use tambour::dialect::DIALECTS;
use tambour::event::{EventKind, JoinedEvents};
use tambour::{Event, Pipeline, Profile};
use tambour_fixtures::fixture::is_updating;
use tambour_fixtures::queue;
use tambour_fixtures::random::RandomSource;
use tambour_fixtures::reading::is_judged_only;
use tambour_fixtures::run::{options_for, reading_case};
use tambour_fixtures::update::update_fixtures;
use tambour_fixtures::{
    ChunkCuts, Fixture, FixtureReading, ReadingCase, fixtures_folder, grammar, load_fixtures, run_fixture,
};

/// Longest input, in bytes, that is cut at every place.
const EVERY_CUT: usize = 8 << 10;

/// Number of cuts of longer inputs.
const SOME_CUTS: usize = 500;

/// Dialects that fixtures may use before the library reads them.
const PLANNED: [&str; 4] = ["jsonseq", "aiplan", "filament", "ai_say"];

fn fixtures() -> Vec<Fixture> {
    let mut fixtures = load_fixtures(&fixtures_folder()).expect("the fixtures are readable");
    let is_known = |name: &str| DIALECTS.iter().any(|entry| entry.name == name);
    fixtures.retain(|fixture| is_known(&fixture.dialect) || !PLANNED.contains(&fixture.dialect.as_str()));
    fixtures
}

/// Runs `check` on each fixture and fails with all complaints at once. Does nothing while fixtures are being recorded.
fn check_fixtures(check: impl Fn(&Fixture) -> Result<(), String> + Sync) {
    if !is_updating() {
        queue::check_all(&fixtures(), check);
    }
}

#[test]
fn fixtures_give_what_they_say() {
    if is_updating() {
        let complaints = update_fixtures(&fixtures());
        assert!(complaints.is_empty(), "{} fixtures:\n{}", complaints.len(), complaints.join("\n\n"));
    } else {
        check_fixtures(run_fixture);
    }
}

#[test]
fn fixtures_read_the_same_under_every_cutting() {
    // J-038, T-014, J-045, T-065: the same events and findings, cut at every byte and in random pieces.
    check_fixtures(|fixture| {
        [Profile::Lenient, Profile::Strict].into_iter().try_for_each(|profile| {
            let options = options_for(fixture, profile);
            let case = reading_case(fixture, &options);
            let whole = case.read(ChunkCuts::Single)?;
            let result = if profile == Profile::Lenient {
                check_cuts(&case, &whole)
            } else {
                case.check_same(&whole, ChunkCuts::Every(1))
            };
            result.map_err(|error| format!("{}: {error}", fixture.name))
        })
    });
}

/// Reads byte by byte, cut in two everywhere, and in random pieces.
fn check_cuts(case: &ReadingCase<'_>, whole: &FixtureReading) -> Result<(), String> {
    let len = case.input.len();
    case.check_same(whole, ChunkCuts::Every(1))?;
    let mut random = RandomSource::new(len as u64);
    if len <= EVERY_CUT {
        (1..len).try_for_each(|at| case.check_same(whole, ChunkCuts::Offsets(&[at])))?;
    } else {
        (0..SOME_CUTS).try_for_each(|_| case.check_same(whole, ChunkCuts::Offsets(&[random.below(len)])))?;
    }
    (0..16).try_for_each(|_| case.check_same(whole, ChunkCuts::Offsets(&random.random_cuts(len))))
}

#[test]
fn fixtures_give_valid_streams() {
    //
    check_fixtures(|fixture| {
        let mut options = options_for(fixture, Profile::Lenient);
        if is_judged_only(&fixture.dialect) {
            return Ok(());
        }
        let reading = reading_case(fixture, &options).read(ChunkCuts::Single)?;
        let skips_thinking = |values: &serde_json::Value| values["plain.thinking"] == "skip";
        options.allow_missing_thinking |= fixture.keys.get("options").is_some_and(skips_thinking);
        grammar::check_stream(&reading.events, &options).map_err(|error| format!("{}: {error}", fixture.name))
    });
}

#[test]
fn extensions_come_only_when_they_are_asked_for() {
    // without extensions the stream is otherwise the same, with the same calls.
    check_fixtures(|fixture| {
        if is_judged_only(&fixture.dialect) {
            return Ok(());
        }
        let options = options_for(fixture, Profile::Lenient);
        let read = |has_extensions: bool| {
            let mut sink = JoinedEvents::default();
            let pipeline = Pipeline::new(&fixture.dialect, &options).map_err(|error| error.to_string())?;
            let mut pipeline = pipeline.with_extensions(has_extensions);
            pipeline.push(&fixture.input, &mut sink);
            pipeline.finish(&fixture.end, &mut sink);
            Ok::<_, String>((sink.events, pipeline.outcome().calls.clone()))
        };
        let (plain, extended) = (read(false)?, read(true)?);
        let contract_events = |events: Vec<Event<'static>>| {
            let mut joined = JoinedEvents::default();
            let filtered = events.into_iter().filter(|event| event.kind() != EventKind::Extension);
            filtered.for_each(|event| tambour::event::Sink::event(&mut joined, event));
            joined.events
        };
        let has_none = plain.0.iter().all(|event| event.kind() != EventKind::Extension);
        let is_same =
            has_none && plain.1 == extended.1 && contract_events(plain.0) == contract_events(extended.0);
        is_same
            .then_some(())
            .ok_or_else(|| format!("{}: extensions change what comes without them", fixture.name))
    });
}

#[test]
fn fixtures_hold_back_no_more_than_documented() {
    // X-007, J-037: a small `limits.hold` leaves only the constant part of the bound on held bytes.
    check_fixtures(|fixture| {
        let mut options = options_for(fixture, Profile::Lenient);
        options.limits.hold = 64;
        reading_case(fixture, &options).check_held().map_err(|error| format!("{}: {error}", fixture.name))
    });
}
