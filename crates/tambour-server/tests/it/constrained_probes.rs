//! Probes of constraints: canaries by server and model, their bounds, and who sees the results.

use serde_json::json;
use tambour_server::upstream::Constrain;

use crate::client::stream_message_id;
use crate::constrained::{
    Behaviour, CANARY_WORD, PROSE, SERVERS, ask, end_yield, form_of, messages_of, scripted_server,
    server_form, start_for, thinking_request,
};
use crate::mock::{GOOD_REPLY, Gate, MockServer, ReceivedRequest, Step, reply_script};
use crate::server::TestServer;

#[tokio::test]
async fn an_unknown_server_is_found_out_by_canaries_once() {
    for server in &SERVERS[..3] {
        let mock = scripted_server(server, |_| Behaviour::Obey, GOOD_REPLY).await;
        let tambour = start_for(&mock, server, false, Some(Constrain::Auto)).await;
        let events = ask(&tambour, &thinking_request(&json!({}))).await;
        assert_eq!(end_yield(&events), "constrained", "{}: {events:#?}", server.name);
        let probes = mock.calls().started - 1;
        for _ in 0..3 {
            ask(&tambour, &thinking_request(&json!({}))).await;
        }
        assert_eq!(mock.calls().started - 4, probes, "the model is probed once");
        // Another model is another one to probe.
        ask(&tambour, &thinking_request(&json!({"model": "another"}))).await;
        assert!(mock.calls().started - 5 > probes);
        let metrics = tambour.get("/metrics").await.text;
        let line = format!(
            "tambour_upstream_constraint_probes_total{{upstream=\"openai\",server=\"{}\",form=\"gbnf\",result=\"obeyed\"}} 2",
            server.name
        );
        assert!(metrics.contains(&line), "{metrics}");
        assert!(
            metrics.contains("tambour_upstream_constraints_total{upstream=\"openai\",form=\"gbnf\"} 5"),
            "{metrics}"
        );
        // Results of probes survive a reload of the configuration.
        let before = mock.calls().started;
        let mut config = crate::server::test_config(&tambour.folder);
        config.add_upstream(&mock.url(), Some("a-model".to_owned())).unwrap();
        config.upstreams.get_mut("openai").unwrap().constrain = Some(Constrain::Auto);
        tambour.reload_handle().apply(config).await.unwrap();
        ask(&tambour, &thinking_request(&json!({}))).await;
        assert_eq!(mock.calls().started, before + 1);
    }
}

#[tokio::test]
async fn fifty_messages_at_once_probe_once() {
    let mock = scripted_server(&SERVERS[0], |_| Behaviour::Obey, GOOD_REPLY).await;
    let tambour = start_for(&mock, &SERVERS[0], true, Some(Constrain::Auto)).await;
    let request = thinking_request(&json!({}));
    let streams = (0..50).map(|_| ask(&tambour, &request));
    for events in futures_util::future::join_all(streams).await {
        assert_eq!(end_yield(&events), "constrained");
    }
    assert_eq!(mock.calls().started, 50 + SERVERS[0].forms.len());
}

#[tokio::test]
async fn models_of_one_server_are_probed_apart() {
    // One model obeys, the other does not; they differ in nothing else.
    let server = server_form("llama.cpp");
    let mock = MockServer::start_with(move |request: &ReceivedRequest| {
        let obeys = request.body["model"] == "obedient";
        match form_of(server, &request.body) {
            Some((_, content)) if obeys && content.contains(CANARY_WORD) => reply_script(CANARY_WORD, 9),
            Some(_) if obeys => reply_script(GOOD_REPLY, 9),
            _ => reply_script(PROSE, 9),
        }
    })
    .await;
    let url = format!("openai=http://{}/v1", mock.address);
    let tambour = TestServer::start(&mock, |config| {
        config.add_upstream(&url, Some("obedient".to_owned())).unwrap();
        let upstream = config.upstreams.get_mut("openai").unwrap();
        (upstream.constrain, upstream.server) = (Some(Constrain::Auto), Some("llama.cpp".to_owned()));
        let mut other = upstream.clone();
        other.model = Some("wilful".to_owned());
        config.upstreams.insert("other".to_owned(), other);
    })
    .await;
    for _ in 0..2 {
        for (upstream, expected) in [("openai", "constrained"), ("other", "fallback")] {
            let events = ask(&tambour, &thinking_request(&json!({"upstream": upstream}))).await;
            assert_eq!(end_yield(&events), expected, "{upstream}: {events:#?}");
        }
    }
    // Each model was probed once, and only what one has obeyed is sent to it.
    let probes = |model: &str| {
        let bodies = mock.requests().into_iter().map(|request| request.body);
        bodies
            .filter(|body| body["model"] == model && body.to_string().contains("How much is 2 + 2?"))
            .count()
    };
    assert_eq!([probes("obedient"), probes("wilful")], [server.forms.len(); 2]);
    let sent = messages_of(&mock);
    assert_eq!(sent.len(), 4);
    assert!(sent.iter().all(|body| (body["model"] == "obedient") == form_of(server, body).is_some()));
}

#[tokio::test]
async fn names_of_models_are_bounded_and_shown_to_nobody_else() {
    let mock = scripted_server(server_form("llama.cpp"), |_| Behaviour::Obey, GOOD_REPLY).await;
    let tambour = start_for(&mock, server_form("llama.cpp"), true, Some(Constrain::Auto)).await;
    let long = "m".repeat(300);
    let events = ask(&tambour, &thinking_request(&json!({"model": long}))).await;
    assert_eq!(end_yield(&events), "fallback", "its prose is not constrained");
    assert_eq!(mock.calls().started, 1, "it is not probed");
    // Sixteen names in a minute, then only the model of the configuration.
    for number in 0..20 {
        ask(&tambour, &thinking_request(&json!({"model": format!("m{number}")}))).await;
    }
    let probes = mock.calls().started - 21;
    assert_eq!(probes, 16 * server_form("llama.cpp").forms.len());
    assert_eq!(end_yield(&ask(&tambour, &thinking_request(&json!({}))).await), "constrained");
    // Only an admin sees the names of others.
    let shown = async || {
        let upstreams = tambour.get("/api/v1/settings").await.json["upstreams"].clone();
        let upstreams = upstreams.as_array().unwrap().iter();
        upstreams.map(|upstream| upstream["probes"].as_array().unwrap().len()).sum::<usize>()
    };
    assert_eq!(shown().await, 17);
    let (_, admin) = crate::keys::new_key(&tambour, "admin", "admin").await;
    let mut tambour = tambour;
    tambour.set_key(Some(&admin));
    let (_, user) = crate::keys::new_key(&tambour, "user", "plain").await;
    tambour.set_key(Some(&user));
    let settings = tambour.get("/api/v1/settings").await.text;
    assert!(settings.contains("a-model") && !settings.contains("m7"), "{settings}");
}

#[tokio::test]
async fn upstreams_that_differ_have_probes_of_their_own() {
    // Two names of one server: one is told which server it is.
    let mock = scripted_server(server_form("vllm"), |_| Behaviour::Obey, GOOD_REPLY).await;
    let url = format!("openai=http://{}/v1", mock.address);
    let tambour = TestServer::start(&mock, |config| {
        config.add_upstream(&url, Some("a-model".to_owned())).unwrap();
        let mut other = config.upstreams["openai"].clone();
        config.upstreams.get_mut("openai").unwrap().constrain = Some(Constrain::Auto);
        other.constrain = Some(Constrain::Auto);
        other.server = Some("openai".to_owned());
        config.upstreams.insert("named".to_owned(), other);
    })
    .await;
    let events = ask(&tambour, &thinking_request(&json!({"upstream": "openai"}))).await;
    assert_eq!(end_yield(&events), "constrained", "{events:#?}");
    let events = ask(&tambour, &thinking_request(&json!({"upstream": "named"}))).await;
    assert_eq!(end_yield(&events), "fallback", "its prose is not constrained: {events:#?}");
}

#[tokio::test]
async fn a_server_that_says_nothing_delays_a_message_only_for_a_while() {
    let gate = Gate::new();
    let silence = gate.clone();
    let mock = MockServer::start_with(move |request: &ReceivedRequest| {
        if request.body.to_string().contains(CANARY_WORD) {
            return vec![Step::Wait(silence.clone()), Step::Cut];
        }
        reply_script(GOOD_REPLY, 9)
    })
    .await;
    let url = mock.url();
    let tambour = TestServer::start(&mock, |config| {
        // Also bounds the probes.
        config.timeouts.first_byte_ms = 1500;
        config.add_upstream(&url, Some("a-model".to_owned())).unwrap();
        let upstream = config.upstreams.get_mut("openai").unwrap();
        (upstream.constrain, upstream.server) = (Some(Constrain::Auto), Some("llama.cpp".to_owned()));
    })
    .await;
    // A cancelled message stops waiting, and leaves the probe to others.
    let mut stream = tambour.open_stream(&thinking_request(&json!({}))).await;
    let first = stream.next_event().await.unwrap();
    mock.wait_until(|calls| calls.started == 1).await;
    let id = stream_message_id(std::slice::from_ref(&first));
    tambour.call("post", &format!("/api/v1/messages/{id}/cancel"), None).await;
    let rest = stream.read_rest().await;
    assert_eq!(rest.last().unwrap().data["finish_reason"], "cancelled");
    let events = ask(&tambour, &thinking_request(&json!({}))).await;
    assert_eq!(end_yield(&events), "plain", "{events:#?}");
    // It is not probed again for every message.
    let before = mock.calls().started;
    assert_eq!(end_yield(&ask(&tambour, &thinking_request(&json!({}))).await), "plain");
    assert_eq!(mock.calls().started, before + 1);
    let events = ask(&tambour, &thinking_request(&json!({"constrain": "required"}))).await;
    let end = &events.last().unwrap().data;
    assert_eq!((&end["code"], &end["retryable"]), (&json!("upstream_unconstrained"), &json!(true)));
    gate.open();
}
