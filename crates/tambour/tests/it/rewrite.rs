//! Replies read and written again in their dialect: what `tambour repair` rests on.

use tambour::dialect::{DIALECTS, Entry};
use tambour::event::{Event, EventKind};
use tambour::verdict::Contract;
use tambour::{End, Options, Profile, Severity};
use tambour_fixtures::corpus::{authored, recorded};
use tambour_fixtures::random::Random;
use tambour_fixtures::{Case, Cuts, folder, load};

/// Every reply at hand, whatever it was meant to be.
fn replies() -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> =
        load(&folder()).expect("fixtures").into_iter().map(|fixture| fixture.input).collect();
    for entry in DIALECTS {
        for corpus in [authored(entry.name), recorded(entry.name)] {
            all.extend(corpus.expect("a corpus").iter().map(|reply| reply.text().into_bytes()));
        }
    }
    let mut random = Random::new(66);
    for _ in 0..400 {
        all.push(random.soup(20).into_bytes());
    }
    for _ in 0..400 {
        let reply = random.pick(&all).clone();
        all.push(random.mutate(&reply));
    }
    all
}

fn read(entry: &Entry, input: &[u8]) -> Vec<Event<'static>> {
    let case =
        Case { dialect: entry.name, options: &Options::default(), reasoning: None, input, end: &End::stop() };
    case.read(Cuts::Whole).expect("the dialect exists").events
}

fn strict() -> Options {
    let mut options = Options::default();
    options.profile = Profile::Strict;
    options
}

/// What a rewritten reply keeps.
fn kept<'a>(events: &[Event<'a>]) -> Vec<Event<'a>> {
    let of_contract = |event: &&Event<'_>| event.kind() == EventKind::Contract;
    events.iter().filter(of_contract).cloned().collect()
}

/// Dialects that can be written, and can say every text: plain replies have no escapes, so that an answer which is the
/// failure marker cannot be told from a failure.
fn writers() -> impl Iterator<Item = (&'static Entry, fn(&[Event<'_>]) -> String)> {
    let written = DIALECTS.iter().filter(|entry| entry.name != "plain");
    written.filter_map(|entry| Some((entry, entry.write?)))
}

/// Fails with the first of all complaints, and their number.
fn none(complaints: &[String]) {
    assert!(complaints.is_empty(), "{} replies, such as {}", complaints.len(), complaints[0]);
}

#[test]
fn what_is_written_passes_the_strict_check() {
    let (options, replies) = (strict(), replies());
    for (entry, write) in writers() {
        let contract = Contract::named(entry.name).expect("a dialect is a contract");
        let complaint = |reply: &Vec<u8>| {
            let written = write(&read(entry, reply));
            let verdict = contract.check(written.as_bytes(), &options);
            let from = String::from_utf8_lossy(reply);
            let error = verdict.first_error()?;
            Some(format!("{}: {from:?}\nwritten {written:?}\n{error:?}", entry.name))
        };
        none(&replies.iter().filter_map(complaint).collect::<Vec<_>>());
    }
}

#[test]
fn what_is_written_stays_as_it_is() {
    let replies = replies();
    for (entry, write) in writers() {
        let complaint = |reply: &Vec<u8>| {
            let once = write(&read(entry, reply));
            let twice = write(&read(entry, once.as_bytes()));
            let from = String::from_utf8_lossy(reply);
            (once != twice).then(|| format!("{}: {from:?}\nonce  {once:?}\ntwice {twice:?}", entry.name))
        };
        none(&replies.iter().filter_map(complaint).collect::<Vec<_>>());
    }
}

#[test]
fn a_valid_reply_keeps_its_events() {
    let (options, replies) = (strict(), replies());
    for (entry, write) in writers() {
        let contract = Contract::named(entry.name).expect("a dialect is a contract");
        let valid = |reply: &&Vec<u8>| {
            let findings = contract.check(reply, &options).findings;
            findings.iter().all(|finding| finding.severity == Severity::Info)
        };
        let complaint = |reply: &Vec<u8>| {
            let events = read(entry, reply);
            let written = write(&events);
            let (before, after) = (kept(&events), kept(&read(entry, written.as_bytes())));
            let from = String::from_utf8_lossy(reply);
            (before != after)
                .then(|| format!("{}: {from:?}\nwritten {written:?}\n{before:?}\n{after:?}", entry.name))
        };
        let (valid, complaints): (Vec<_>, Vec<_>) =
            replies.iter().filter(valid).map(|reply| ((), complaint(reply))).unzip();
        assert!(valid.len() > 20, "{}: only {} valid replies", entry.name, valid.len());
        none(&complaints.into_iter().flatten().collect::<Vec<_>>());
    }
}
