//! What the client of a turn is sent while it goes on: one valid stream, whatever calls of models it takes.

use crate::http::problem::Problem;
use axum::body::Bytes;
use serde_json::{Value, json};
use tambour::dialogue::Turn;
use tambour::encode::jsonseq;
use tambour::encode::sse::{Envelope, frame};
use tambour::event::{Event, EventKind, Extension, Failure};
use tambour::options::Language;
use tambour::{End, Finding, Options, Pipeline, Sink};

use tokio::sync::watch;

/// The frames of a turn, as they come. Each reader begins with the first one.
#[derive(Clone)]
pub(crate) struct Frames {
    all: watch::Receiver<Vec<Bytes>>,
    next: usize,
}

impl Frames {
    /// The next frame; none when the turn is over.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        let at = self.next;
        let all = self.all.wait_for(|all| all.len() > at).await.ok()?;
        self.next += 1;
        all.get(at).cloned()
    }
}

/// Where the events of a turn go. Without a client they go nowhere.
pub(crate) struct Outlet {
    client: Option<watch::Sender<Vec<Bytes>>>,
    envelope: Envelope,
    number: u64,
    extensions: bool,
    findings: bool,
    /// Whether text of the answer was sent, and whether the stream has begun at all.
    answered: bool,
    begun: bool,
    /// Whether what comes is kept, and what was kept.
    holding: bool,
    held: Vec<Event<'static>>,
    /// The end of the message, which waits for the end of the turn.
    ending: Vec<Event<'static>>,
    over: bool,
}

impl Outlet {
    /// An outlet nobody listens to.
    pub(crate) fn closed() -> Outlet {
        Outlet::new(None, &Envelope::new("", ""), false, false)
    }

    /// An outlet for a client, and what it gets.
    pub(crate) fn open(turn: &str, request: &str, extensions: bool, findings: bool) -> (Outlet, Frames) {
        let (sender, all) = watch::channel(Vec::new());
        let outlet = Outlet::new(Some(sender), &Envelope::new(turn, request), extensions, findings);
        (outlet, Frames { all, next: 0 })
    }

    fn new(
        client: Option<watch::Sender<Vec<Bytes>>>,
        envelope: &Envelope,
        extensions: bool,
        findings: bool,
    ) -> Outlet {
        Outlet {
            client,
            envelope: envelope.clone(),
            number: 0,
            extensions,
            findings,
            answered: false,
            begun: false,
            holding: false,
            held: Vec::new(),
            ending: Vec::new(),
            over: false,
        }
    }

    /// Keeps what comes from now on, unless the client has seen some of the answer; whether it has.
    pub(crate) fn hold(&mut self) -> bool {
        self.holding = !self.answered;
        self.answered
    }

    /// What was kept goes out.
    pub(crate) fn release(&mut self) {
        self.holding = false;
        for event in std::mem::take(&mut self.held) {
            self.event(event);
        }
    }

    /// What was kept is thrown away: it is asked for again.
    pub(crate) fn discard(&mut self) {
        self.holding = false;
        self.held.clear();
        self.ending.clear();
    }

    /// Where the turn stands, for those who read now.
    pub(crate) fn status(&mut self, data: &Value) {
        self.frame("status", None, data);
    }

    /// The end of the turn.
    pub(crate) fn close(&mut self, turn: &Turn, requests: &[Extension], options: &Options) {
        if self.over {
            return;
        }
        match &turn.error {
            Some(failure) if !self.begun => {
                self.status(&json!({ "state": turn.status, "turn": turn }));
                return self.fail(failure);
            }
            _ => {}
        }
        if self.ending.is_empty() {
            self.message_of_ours(turn, requests, options);
        } else {
            requests.iter().for_each(|request| self.send(&Event::from(request.clone())));
        }
        // The end stands behind all else.
        let ending = std::mem::take(&mut self.ending);
        let (last, before): (Vec<_>, Vec<_>) =
            ending.into_iter().partition(|event| matches!(event, Event::Completed(_) | Event::Error(_)));
        before.iter().for_each(|event| self.send(event));
        self.status(&json!({ "state": turn.status, "turn": turn }));
        last.iter().for_each(|event| self.send(event));
        self.over = true;
    }

    /// The turn did not take place.
    pub(crate) fn refuse(&mut self, problem: &Problem) {
        if !self.over {
            self.fail(&Failure {
                code: problem.code().into(),
                message: problem.detail().to_owned(),
                retryable: false,
            });
        }
    }

    fn fail(&mut self, failure: &Failure) {
        self.send(&Event::Error(failure.clone()));
        self.over = true;
    }

    /// A turn in which the model said nothing still is a message, in a sentence of ours.
    fn message_of_ours(&mut self, turn: &Turn, requests: &[Extension], options: &Options) {
        let text = match (options.texts.language, &turn.ai_message, requests.is_empty()) {
            (_, Some(message), _) => message.as_str(),
            (Language::Zh, None, false) => "请看下面的内容。",
            (Language::En, None, false) => "Please look at this.",
            (Language::Zh, None, true) => "好的。",
            (Language::En, None, true) => "All right.",
        };
        let Ok(pipeline) = Pipeline::new("plain", options) else { return };
        let mut pipeline = pipeline.with_extensions(true);
        pipeline.push_str(text, self);
        let metadata = turn.metadata.as_ref();
        if let Some(decision) = metadata.and_then(|metadata| metadata.exit_decision.clone()) {
            pipeline.insert(decision, self);
        }
        requests.iter().for_each(|request| pipeline.insert(request.clone(), self));
        pipeline.finish(&End::stop(), self);
        // What a model said before is named as it was then.
        let said = metadata.filter(|_| turn.ai_message.is_some()).map(|metadata| &metadata.action_type);
        for event in &mut self.ending {
            if let (Event::Completed(completed), Some(said)) = (event, said) {
                completed.metadata.dialect.clone_from(said);
            }
        }
    }

    fn send(&mut self, event: &Event<'_>) {
        let kind = event.kind();
        let wanted = match event {
            Event::Finding(_) => self.findings,
            _ => kind != EventKind::Extension || self.extensions,
        };
        self.begun |= kind == EventKind::Contract;
        if !wanted || self.client.is_none() {
            return;
        }
        self.number += 1;
        let mut out = Vec::new();
        jsonseq::event(event, self.number, &self.envelope, &mut out);
        self.put(out);
    }

    fn frame(&mut self, name: &str, number: Option<u64>, data: &Value) {
        if self.client.is_none() {
            return;
        }
        let mut out = Vec::new();
        frame(name, number, &self.envelope, &mut out, |out| {
            out.extend_from_slice(data.to_string().as_bytes())
        });
        self.put(out);
    }

    /// A client that has gone away is no reason to stop; nothing is kept for nobody.
    fn put(&mut self, out: Vec<u8>) {
        match &self.client {
            Some(client) if client.is_closed() => self.client = None,
            Some(client) => client.send_modify(|all| all.push(out.into())),
            None => {}
        }
    }
}

impl Sink for Outlet {
    fn event(&mut self, event: Event<'_>) {
        if self.over {
            return;
        }
        if self.holding {
            return self.held.push(event.into_owned());
        }
        match event {
            Event::FinalEnd | Event::Completed(_) => self.ending.push(event.into_owned()),
            Event::Error(_) => {
                // What failed after it had begun is closed; before, the end of the turn says it.
                if self.begun {
                    self.ending.push(event.into_owned());
                }
            }
            event => {
                self.answered |= matches!(event, Event::FinalDelta { .. });
                self.send(&event);
            }
        }
    }

    fn finding(&mut self, _: Finding) {}
}
