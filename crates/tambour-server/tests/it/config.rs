//! Configuration: file, environment, masked output, and refusals.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use serde_json::{Value, json};
use tambour_server::{Config, Server, StartError};

use crate::client::joined_text;
use crate::mock::{Gate, MockServer, Step, delta_step, finish_steps, reply_script};
use crate::server::{Folder, TestServer, test_config};

fn load_config(file: &str, environment: &[(&str, &str)]) -> Result<Config, String> {
    let folder = Folder::new();
    let path = folder.write_file("tambour.toml", file);
    let environment = environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Config::load(Some(&path), environment).map_err(|error| error.to_string())
}

#[test]
fn the_environment_overrides_the_file() {
    let file = "listen = \"127.0.0.1:9000\"\ngrace_ms = 5\n[limits]\nhold = 10\n[upstreams.mine]\nkind = \"openai\"\n\
        url = \"http://127.0.0.1:1/v1\"\nmodel = \"m\"\nkey_env = \"MY_KEY\"\n";
    let config = load_config(
        file,
        &[
            ("TAMBOUR_GRACE_MS", "0"),
            ("TAMBOUR_LIMITS_INPUT", "77"),
            ("TAMBOUR_TIMEOUTS_SILENCE_MS", "88"),
            ("TAMBOUR_DURABLE", "true"),
            ("TAMBOUR_API_KEY", "123456"),
            ("TAMBOUR_CORS_ORIGINS", "https://a.example, https://b.example"),
            ("TAMBOUR_UPSTREAM_API_KEY", "hidden"),
            ("TAMBOUR_DATABASE", "sqlite:/x/y.sqlite"),
            ("TAMBOUR_TOOLS_ALLOWED_HOSTS", "a.example,*.b.example"),
            ("TAMBOUR_TOOLS_MAX_ITERATIONS", "3"),
            // The secret of a tool is not a setting.
            ("TAMBOUR_TOOL_SECRET_LINT", "hidden"),
            ("HOME", "/nowhere"),
        ],
    )
    .unwrap();
    assert_eq!(config.listen, SocketAddr::from(([127, 0, 0, 1], 9000)));
    assert_eq!((config.grace_ms, config.limits.hold, config.limits.input), (0, 10, 77));
    assert_eq!(config.timeouts.silence_ms, 88);
    assert!(config.durable);
    assert_eq!(config.tools.allowed_hosts, ["a.example", "*.b.example"]);
    assert_eq!(config.tools.max_iterations, 3);
    assert!(!config.to_masked_toml().contains("hidden"));
    // A key made of digits is read as text.
    assert_eq!(config.api_key.as_deref(), Some("123456"));
    assert_eq!(config.cors_origins, ["https://a.example", "https://b.example"]);
    assert_eq!(config.database_file().unwrap(), std::path::Path::new("/x/y.sqlite"));
    assert_eq!(config.upstreams["mine"].model.as_deref(), Some("m"));
    let environment =
        load_config("", &[("TAMBOUR_UPSTREAM", "openai=http://127.0.0.1:1/v1"), ("TAMBOUR_MODEL", "m")])
            .unwrap();
    assert_eq!(environment.default_upstream(), Some("openai"));
    assert_eq!(load_config("", &[("TAMBOUR_API_KEY", " ")]).unwrap().api_key, None);
}

/// Default of a field by its dotted name.
fn default_of<'a>(defaults: &'a Value, field: &str) -> Option<&'a Value> {
    defaults.pointer(&format!("/{}", field.replace('.', "/")))
}

/// Dotted names of the numbers in a configuration.
fn number_fields(config: &Value, prefix: &str) -> Vec<String> {
    let fields = config.as_object().into_iter().flatten();
    let names = fields.flat_map(|(name, value)| match value {
        Value::Number(_) => vec![format!("{prefix}{name}")],
        value => number_fields(value, &format!("{prefix}{name}.")),
    });
    names.collect()
}

#[test]
fn the_table_of_the_document_has_the_defaults() {
    let page = include_str!("../../../../docs/http-api.md");
    let defaults = serde_json::to_value(Config::default()).unwrap();
    let rows = page.lines().skip_while(|line| *line != "| field | variable | default | meaning |").skip(2);
    let mut described = BTreeSet::new();
    for row in rows.take_while(|line| line.starts_with('|')) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let names: Vec<&str> = cells[1].split('`').skip(1).step_by(2).collect();
        let group = names[0].rsplit_once('.').map_or("", |(group, _)| group);
        let values: Vec<&str> = cells[3].split(", ").collect();
        for (at, name) in names.iter().enumerate() {
            let field = if name.starts_with('.') { format!("{group}{name}") } else { (*name).to_owned() };
            let value = values.get(at).unwrap_or(&values[0]);
            // Others are described in words.
            let is_literal = value.starts_with('`') || value.starts_with(|c: char| c.is_ascii_digit());
            if is_literal && !field.contains("NAME") {
                let default =
                    default_of(&defaults, &field).unwrap_or_else(|| panic!("there is no `{field}`"));
                let default = default.as_str().map_or_else(|| default.to_string(), str::to_owned);
                assert_eq!(value.trim_matches('`'), default, "{field}");
            }
            described.insert(field);
        }
    }
    // Those of `limits` share a row, which a test of the library reads.
    for field in number_fields(&defaults, "").iter().filter(|field| !field.starts_with("limits.")) {
        assert!(described.contains(field), "`{field}` is not in docs/http-api.md");
    }
    // Sizes in the text for operators.
    let page = include_str!("../../../../docs/operations.md");
    for field in ["max_request", "max_import"] {
        let mebibytes = default_of(&defaults, field).and_then(Value::as_u64).unwrap() >> 20;
        assert!(page.contains(&format!("`{field}` ({mebibytes} MiB)")), "{field}: {mebibytes} MiB");
    }
}

#[test]
fn what_does_not_fit_is_refused_by_name() {
    for (file, environment, expected_text) in [
        ("colour = 1", ("A", "b"), "colour"),
        ("[upstreams.a]\nkind = \"demo\"\nkey = \"secret\"", ("A", "b"), "key"),
        ("grace_ms = \"soon\"", ("A", "b"), "grace_ms"),
        ("not toml", ("A", "b"), "TOML"),
        ("", ("TAMBOUR_GRACE_MS", "soon"), "TAMBOUR_GRACE_MS"),
        ("", ("TAMBOUR_DURABLE", "1"), "TAMBOUR_DURABLE"),
        ("", ("TAMBOUR_UPSTREAM", "pigeon=loft"), "pigeon"),
        ("", ("TAMBOUR_DATABASE", "mysql://x"), "database"),
    ] {
        let error = load_config(file, &[environment]).unwrap_err();
        assert!(error.contains(expected_text), "{error}");
    }
    assert!(Config::load(Some(std::path::Path::new("/nowhere/tambour.toml")), std::iter::empty()).is_err());
}

#[test]
fn what_is_shown_has_no_secrets() {
    let mut config = load_config("", &[("TAMBOUR_API_KEY", "top-secret")]).unwrap();
    config.add_upstream("openai=http://user:top-secret@127.0.0.1:1/v1?key=top-secret", None).unwrap();
    for output in [config.to_masked_toml(), format!("{config:?}")] {
        assert!(!output.contains("top-secret"), "{output}");
        assert!(output.contains("http://***@127.0.0.1:1/v1?***"), "{output}");
        assert!(output.contains("TAMBOUR_UPSTREAM_API_KEY"), "{output}");
    }
    // The masked output can be read again.
    let reloaded = load_config(&Config::default().to_masked_toml(), &[]).unwrap();
    assert_eq!(reloaded.to_masked_toml(), Config::default().to_masked_toml());
}

#[tokio::test]
async fn an_mcp_server_that_cannot_work_is_refused_with_its_place() {
    let url = "url = \"http://127.0.0.1:1/mcp\"";
    for (lines, place, expected_text) in [
        (&["[mcp.a]", url][..], ":1:", "missing field `tools`"),
        (&["[mcp.a]", url, "tools = []"], ":3:1: `mcp.a.tools`", "no tool would be offered"),
        (&["[mcp.a]", url, "tools = [\"*\"]", "colour = 1"], ":4:1", "colour"),
        (&["", "[mcp.a]", "tools = [\"*\"]"], ":2:6: `mcp.a`", "neither a `url` nor a `command`"),
        (&["[mcp.a]", url, "tools = [\"*\"]", "command = \"x\""], ":4:1: `mcp.a.command`", "one of them"),
        (&["[mcp.Big]", url, "tools = [\"*\"]"], ":1:6: `mcp.Big`", "a-z"),
        (&["[mcp.a]", "url = \"127.0.0.1:1\"", "tools = [\"*\"]"], ":2:1: `mcp.a.url`", "http://"),
        (&["[mcp.a]", "url = \"http://\"", "tools = [\"*\"]"], ":2:1: `mcp.a.url`", "not a valid URL"),
        (&["[mcp.a]", url, "args = [\"x\"]", "tools = [\"*\"]"], ":3:1: `mcp.a.args`", "`command`"),
        (&["[mcp.a]", "command = \" \"", "tools = [\"*\"]"], ":2:1: `mcp.a.command`", "empty"),
        (
            &["[mcp.a]", "command = \"x\"", "key_env = \"K\"", "tools = [\"*\"]"],
            ":3:1: `mcp.a.key_env`",
            "`url`",
        ),
        (&["[mcp.a]", "command = \"x\"", "env = [\"A=1\"]", "tools = [\"*\"]"], ":3:1: `mcp.a.env`", "names"),
        (
            &["[mcp.a]", url, "key_env = \"NO_SUCH_KEY\"", "tools = [\"*\"]"],
            ":3:1: `mcp.a.key_env`",
            "not set",
        ),
        (
            &["[mcp.a]", url, "tools = [\"*\"]", "headers = { Host = \"x\" }"],
            ":4:1: `mcp.a.headers`",
            "protocol",
        ),
        (
            &["[mcp.a]", url, "tools = [\"*\"]", "headers = { \"a b\" = \"x\" }"],
            ":4:1: `mcp.a.headers`",
            "not a valid header",
        ),
        (&["[mcp.a]", url, "tools = [\"a b\"]"], ":3:1: `mcp.a.tools`", "letters"),
        (&["[mcp.a]", url, "tools = [\"*\"]", "prefix = \"a/\""], ":4:1: `mcp.a.prefix`", "letters"),
        (&["[mcp.a]", url, "tools = [\"x\"]", "confirm = [\"y\"]"], ":4:1: `mcp.a.confirm`", "`y`"),
        (&["[mcp.a]", url, "tools = [\"x\"]", "timeout_ms = 0"], ":4:1: `mcp.a.timeout_ms`", "300000"),
        (
            &["[mcp.a]", url, "tools = [\"x\"]", "[mcp.b]", url, "tools = [\"y\", \"x\"]"],
            ":6:1: `mcp.b.tools`",
            "so has `a`",
        ),
    ] {
        let error = match load_config(&lines.join("\n"), &[]) {
            Ok(config) => Server::start(config).await.err().expect("it is refused").to_string(),
            Err(error) => error,
        };
        assert!(error.contains(place) && error.contains(expected_text), "{lines:?}: {error}");
    }
    let secret = "[mcp.a]\nurl = \"http://u:top-secret@127.0.0.1:1/?k=top-secret\"\ntools = [\"*\"]\n\
        headers = { x-key = \"top-secret\" }\n";
    let output = load_config(secret, &[]).unwrap().to_masked_toml();
    assert!(!output.contains("top-secret") && output.contains("[mcp.a]"), "{output}");
    assert!(load_config(&output, &[]).is_ok());
}

#[tokio::test]
async fn strangers_are_not_let_in_without_a_key() {
    let folder = Folder::new();
    let mut open_config = test_config(&folder);
    open_config.listen = SocketAddr::from(([0, 0, 0, 0], 0));
    let refusal = Server::start(open_config.clone()).await.err().unwrap();
    assert!(matches!(refusal, StartError::Unprotected(_)), "{refusal}");
    open_config.api_key = Some(String::new());
    assert!(matches!(Server::start(open_config.clone()).await.err(), Some(StartError::Unprotected(_))));
    open_config.api_key = Some("a-secret-of-sixteen".to_owned());
    assert!(Server::start(open_config).await.is_ok());
}

#[tokio::test]
async fn a_start_that_cannot_work_says_why() {
    let folder = Folder::new();
    let mut wrong = test_config(&folder);
    wrong.default_upstream = Some("other".to_owned());
    assert!(Server::start(wrong).await.err().unwrap().to_string().contains("other"));
    let mut wrong = test_config(&folder);
    wrong.add_upstream("replay=/nowhere.jsonl", None).unwrap();
    assert!(Server::start(wrong).await.err().unwrap().to_string().contains("/nowhere.jsonl"));
    let first = Server::start(test_config(&folder)).await.unwrap();
    let second = Server::start(test_config(&folder)).await.err().unwrap();
    assert!(second.to_string().contains("in use by another server"), "{second}");
    drop(first);
    let occupied = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut wrong = test_config(&folder);
    wrong.listen = occupied.local_addr().unwrap();
    assert!(matches!(Server::start(wrong).await.err(), Some(StartError::Listen(..))));
}

#[tokio::test]
async fn a_reload_replaces_upstreams_and_drops_no_stream() {
    let gate = Gate::new();
    let mut script = vec![delta_step("old "), Step::Wait(gate.clone()), delta_step("end")];
    script.extend(finish_steps("stop"));
    let (old_upstream, new_upstream) =
        (MockServer::start(vec![script]).await, MockServer::start(vec![reply_script("new", 1)]).await);
    let server = TestServer::start_default(&old_upstream).await;
    let request = json!({"text": "x", "dialect": "plain", "output_protocol": "jsonseq_v1"});
    let mut running = server.open_stream(&request).await;
    let mut events = running.read_until("final_delta").await;
    let mut next = test_config(&server.folder);
    next.listen = SocketAddr::from(([127, 0, 0, 1], 1));
    next.add_upstream(&new_upstream.url(), None).unwrap();
    next.limits.phases = 7;
    assert_eq!(server.reload_handle().apply(next.clone()).await.unwrap(), ["listen"]);
    assert_eq!(joined_text(&server.open_stream(&request).await.read_checked().await, "final_delta"), "new");
    assert_eq!(server.get("/api/v1/settings").await.json["limits"]["phases"], 7);
    gate.open();
    events.extend(running.read_rest().await);
    crate::client::check_stream(&events);
    assert_eq!(joined_text(&events, "final_delta"), "old end");
    // A configuration that cannot be used changes nothing.
    next.add_upstream("replay=/nowhere.jsonl", None).unwrap();
    assert!(server.reload_handle().apply(next).await.is_err());
    assert_eq!(joined_text(&server.open_stream(&request).await.read_checked().await, "final_delta"), "new");
}

#[cfg(unix)]
#[tokio::test]
async fn a_hang_up_loads_the_configuration_again() {
    let mock = MockServer::start(vec![reply_script("x", 1)]).await;
    let folder = Folder::new();
    let file = folder.write_file("tambour.toml", "[limits]\nphases = 3\n");
    let load = {
        let (data, file) = (folder.0.join("data"), file.clone());
        move || {
            let mut config = Config::load(Some(&file), std::iter::empty())?;
            config.listen = SocketAddr::from(([127, 0, 0, 1], 0));
            config.data.clone_from(&data);
            Ok(config)
        }
    };
    let server = Server::start(load().unwrap()).await.unwrap().with_reload(load);
    let server = TestServer::from_server(folder, server);
    // The server answers, so its signal handlers are installed.
    assert_eq!(server.get("/api/v1/settings").await.json["limits"]["phases"], 3);
    let signal_reload = || {
        let kill = format!("kill -HUP {}", std::process::id());
        assert!(std::process::Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    };
    let wait_for_phases = async |phases: u64| {
        crate::server::with_timeout(async {
            while server.get("/api/v1/settings").await.json["limits"]["phases"] != phases {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        })
        .await;
    };
    std::fs::write(
        &file,
        format!(
            "[limits]\nphases = 4\n[upstreams.m]\nkind = \"openai\"\nurl = \"http://{}/v1\"\n",
            mock.address
        ),
    )
    .unwrap();
    signal_reload();
    wait_for_phases(4).await;
    assert_eq!(server.get("/api/v1/settings").await.json["upstreams"][0]["name"], "m");
    // A broken file changes nothing; the next valid one is applied.
    std::fs::write(&file, "limits = 5").unwrap();
    signal_reload();
    std::fs::write(&file, "[limits]\nphases = 6\n").unwrap();
    signal_reload();
    wait_for_phases(6).await;
}

/// Reason why the server does not start with this file and environment.
async fn start_error(file: &str, environment: &[(&str, &str)]) -> String {
    let folder = Folder::new();
    let path = folder.write_file("tambour.toml", file);
    let environment = environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let load_result = Config::load(Some(&path), environment);
    let error = match load_result {
        Ok(mut config) => {
            config.listen = SocketAddr::from(([127, 0, 0, 1], 0));
            config.data = folder.0.join("data");
            Server::start(config).await.err().expect("it is refused").to_string()
        }
        Err(error) => error.to_string(),
    };
    error.replace(&path.display().to_string(), "FILE")
}

/// A service called `tambour` gives each pod of a Kubernetes namespace these variables.
#[test]
fn unknown_variables_are_known_by_name_and_those_of_kubernetes_passed_over() {
    let kubernetes = [
        ("TAMBOUR_SERVICE_HOST", "10.96.0.9"),
        ("TAMBOUR_SERVICE_PORT", "80"),
        ("TAMBOUR_SERVICE_PORT_HTTP", "80"),
        ("TAMBOUR_PORT", "tcp://10.96.0.9:80"),
        ("TAMBOUR_PORT_80_TCP", "tcp://10.96.0.9:80"),
        ("TAMBOUR_PORT_80_TCP_PROTO", "tcp"),
        ("TAMBOUR_PORT_80_TCP_PORT", "80"),
        ("TAMBOUR_PORT_80_TCP_ADDR", "10.96.0.9"),
        ("TAMBOUR_DB_SERVICE_HOST", "10.96.0.10"),
        ("TAMBOUR_DB_PORT", "tcp://10.96.0.10:5432"),
        ("TAMBOUR_DB_PORT_5432_TCP_ADDR", "10.96.0.10"),
    ];
    let others = [
        ("TAMBOUR_COLOUR", "red"),
        ("TAMBOUR_LIMITS_COLOUR", "red"),
        ("TAMBOUR_PORT_EIGHTY_TCP", "tcp://10.96.0.9:80"),
        ("TAMBOUR_PORT_80_TCP_X", "1"),
        // Perhaps somebody means the port to listen on.
        ("TAMBOUR_PORT", "8080"),
    ];
    let known = [("TAMBOUR_GRACE_MS", "7"), ("TAMBOUR_TELEMETRY_OTLP_ENDPOINT", "http://127.0.0.1:4318")];
    let config = load_config("", &[&kubernetes[..], &others, &known].concat()).unwrap();
    assert_eq!(config.unknown_variables, others.map(|(name, _)| name));
    assert_eq!(config.grace_ms, 7);
    assert_eq!(config.telemetry.otlp_endpoint.as_deref(), Some("http://127.0.0.1:4318"));
    assert_eq!(config.limits, tambour::limits::Limits::default());
}

#[tokio::test]
async fn what_cannot_work_is_told_at_start_with_its_place() {
    let upstream = |lines: &str| format!("grace_ms = 5\n\n[upstreams.mine]\nkind = \"openai\"\n{lines}\n");
    let url = "url = \"http://127.0.0.1:9/v1\"\n";
    let folder = Folder::new();
    let (empty, two_lines) = (folder.write_file("empty", " \n"), folder.write_file("two", "one\ntwo\n"));
    for (file, environment, expected_text) in [
        // Not a valid configuration at all.
        ("listen = \"127.0.0.1:0\"\ncolour = 1", ("A", "b"), &["FILE:2:1: ", "colour"][..]),
        ("\n[limits]\n  hold = \"long\"", ("A", "b"), &["FILE:3:10: `limits.hold`: ", "long"]),
        ("\n\nnot toml", ("A", "b"), &["FILE:3:", "not TOML"]),
        ("database = \"mysql://x\"", ("A", "b"), &["FILE:1:1: `database`", "sqlite"]),
        ("", ("TAMBOUR_DATABASE", "mysql://x"), &["TAMBOUR_DATABASE: `database`", "sqlite"]),
        ("", ("TAMBOUR_LISTEN", "here"), &["TAMBOUR_LISTEN: ", "address"]),
        ("", ("TAMBOUR_UPSTREAM", "pigeon=loft"), &["TAMBOUR_UPSTREAM: ", "pigeon"]),
        // A weak key is refused from any source, and never repeated in the message.
        ("\napi_key = \"123456789012345\"", ("A", "b"), &["FILE:2:1: `api_key`", "16", "15", "openssl"]),
        ("", ("TAMBOUR_API_KEY", "123456789012345"), &["TAMBOUR_API_KEY: `api_key`", "16", "openssl"]),
        // Upstreams.
        ("default_upstream = \"mine\"", ("A", "b"), &["FILE:1:1: `default_upstream`", "mine", "demo"]),
        ("", ("TAMBOUR_DEFAULT_UPSTREAM", "mine"), &["TAMBOUR_DEFAULT_UPSTREAM: ", "mine"]),
        (
            "[upstreams.a]\nkind = \"pigeon\"",
            ("A", "b"),
            &["FILE:2:1: `upstreams.a.kind`", "pigeon", "openai"],
        ),
        (&upstream(""), ("A", "b"), &["FILE:3:12: `upstreams.mine.url`", "missing"]),
        (
            &upstream("url = \"127.0.0.1:9100/v1\""),
            ("A", "b"),
            &["FILE:5:1: `upstreams.mine.url`", "did you mean `http://127.0.0.1:9100/v1`?"],
        ),
        (&upstream("url = \"ftp://x/v1\""), ("A", "b"), &["FILE:5:1: ", "ftp://x/v1", "https://"]),
        (&upstream("url = \"http://\""), ("A", "b"), &["FILE:5:1: ", "http://"]),
        (&upstream("url = \"http://x/v1?a=b\""), ("A", "b"), &["FILE:5:1: ", "query"]),
        ("", ("TAMBOUR_UPSTREAM", "openai=localhost:9/v1"), &["TAMBOUR_UPSTREAM: ", "http://localhost:9/v1"]),
        (
            &upstream(&format!("{url}key_env = \"NO_SUCH_KEY_OF_TESTS\"")),
            ("A", "b"),
            &["FILE:6:1: `upstreams.mine.key_env`", "NO_SUCH_KEY_OF_TESTS", "not set"],
        ),
        (
            &upstream(&format!("{url}key_env = \"TAMBOUR_UPSTREAM_API_KEY\"")),
            ("A", "b"),
            &["FILE:6:1: `upstreams.mine.key_env`", "not set"],
        ),
        (
            &upstream(&format!("{url}key_file = \"/nowhere/key\"")),
            ("A", "b"),
            &["FILE:6:1: `upstreams.mine.key_file`", "/nowhere/key", "cannot be read"],
        ),
        (&upstream(&format!("{url}key_file = {empty:?}")), ("A", "b"), &["FILE:6:1: ", "is empty"]),
        (&upstream(&format!("{url}key_file = {two_lines:?}")), ("A", "b"), &["FILE:6:1: ", "one word"]),
        (
            "[upstreams.a]\nkind = \"replay\"\nurl = \"/nowhere.jsonl\"",
            ("A", "b"),
            &["FILE:3:1: `upstreams.a.url`", "/nowhere.jsonl"],
        ),
    ] {
        let error = start_error(file, &[environment]).await;
        assert!(expected_text.iter().all(|part| error.contains(part)), "{expected_text:?}: {error}");
        assert!(error.starts_with(expected_text[0]), "{expected_text:?}: {error}");
        assert!(!error.contains("123456789012345"), "{error}");
    }
}

#[tokio::test]
async fn what_can_work_starts() {
    let folder = Folder::new();
    let key = folder.write_file("key", "sk-of-a-test\n");
    for (file, environment) in [
        (format!("[upstreams.a]\nkind = \"openai\"\nurl = \"http://x/v1/\"\nkey_file = {key:?}"), ("A", "b")),
        (
            "[upstreams.a]\nkind = \"openai\"\nurl = \"HTTPS://[::1]/v1\"\nkey_env = \"CARGO_PKG_NAME\""
                .to_owned(),
            ("A", "b"),
        ),
        // A local model needs no key.
        (String::new(), ("TAMBOUR_UPSTREAM", "openai=http://127.0.0.1:9/v1")),
        (String::new(), ("TAMBOUR_API_KEY", "1234567890123456")),
    ] {
        let mut config = load_config(&file, &[environment]).unwrap();
        config.listen = SocketAddr::from(([127, 0, 0, 1], 0));
        config.data = Folder::new().0.join("data");
        let start_result = Server::start(config).await;
        assert!(start_result.is_ok(), "{file} {environment:?}: {}", start_result.err().unwrap());
    }
}

#[test]
fn variables_set_how_long_messages_are_kept() {
    let environment =
        [("TAMBOUR_RETENTION_DAYS", "3"), ("TAMBOUR_RETENTION_BYTES", "4000"), ("TAMBOUR_MAX_HISTORY", "5")];
    let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let config = tambour_server::Config::load(None, environment.into_iter()).unwrap();
    assert_eq!((config.retention.days, config.retention.bytes, config.max_history), (Some(3), Some(4000), 5));
}
