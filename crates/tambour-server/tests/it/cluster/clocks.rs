//! Servers whose clocks are wrong, from the start or all at once.

use std::path::Path;
use std::process::Command;

use serde_json::json;

use super::readers::{Readers, plain_request};
use super::{Member, Setup, long_reply};
use crate::client::check_stream;
use crate::mock::MockServer;
use crate::postgres::cluster as postgres;
use crate::server::{Answer, with_timeout};

/// Variables of a process whose clock is that of a file, such as `+2h`. Its monotonic clock is the machine's.
fn clock_variables(file: &Path) -> Vec<(String, String)> {
    // The program knows where its library is.
    let output = Command::new("faketime").args(["-m", "-f", "+0", "printenv", "LD_PRELOAD"]).output();
    let output = output.expect("`faketime` is installed: `cargo xtask test` installs it");
    let library = String::from_utf8(output.stdout).unwrap();
    [
        ("LD_PRELOAD", library.trim()),
        ("FAKETIME_TIMESTAMP_FILE", file.to_str().unwrap()),
        ("FAKETIME_NO_CACHE", "1"),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into()
}

/// Posts a message with an idempotency key.
async fn post_with_key(member: &Member, key: &str) -> Answer {
    let body = plain_request().to_string();
    member.server.call_with("post", "/api/v1/messages", Some(&body), &[("idempotency-key", key)]).await
}

/// Times of messages, sweeps, idempotency keys, tokens and leases are those of the database.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_with_wrong_clocks_work_as_others_do() {
    let mock = MockServer::start(vec![long_reply(2, 10)]).await;
    let url = postgres().await.new_database().await;
    let folder = crate::server::Folder::new();
    // The first one sweeps. A day is also the time for which idempotency keys hold.
    let offsets = ["+25h", "-25h", "+0"];
    let files: Vec<_> = (0..3).map(|at| folder.write_file(&format!("clock {at}"), offsets[at])).collect();
    let members: Vec<Member> = files
        .iter()
        .map(|file| {
            let setup = Setup::new(&url, &mock);
            Member::start_with(&Setup { retention_days: Some(1), variables: clock_variables(file), ..setup })
        })
        .collect();
    let pool = sqlx::PgPool::connect(&url).await.unwrap();
    let mut ids = Vec::new();
    for (round, offset) in [(0, "+0"), (1, "+72h"), (2, "-72h")] {
        // The third clock jumps while the server runs.
        std::fs::write(&files[2], offset).unwrap();
        for (at, member) in members.iter().enumerate() {
            let key = format!("round {round}, member {at}");
            let answer = post_with_key(member, &key).await;
            assert_eq!(answer.status, 202, "{}", answer.text);
            let id = answer.json["message_id"].as_str().unwrap().to_owned();
            member.server.wait_ended(&id).await;
            for other in &members {
                let repeat = post_with_key(other, &key).await;
                assert_eq!(repeat.json["message_id"], id.as_str(), "{}", repeat.text);
            }
            // A token of one server holds on the others.
            let path = format!("/api/v1/messages/{id}/stream_tokens");
            let token = member.server.post(&path, &json!(null)).await.json["token"].clone();
            let path = format!("/api/v1/messages/{id}/events?token={}", token.as_str().unwrap());
            for other in &members {
                let url = format!("http://{}{path}", other.server.address);
                let answer = reqwest::Client::builder().no_proxy().build().unwrap().get(url).send().await;
                assert_eq!(answer.unwrap().status(), 200);
            }
            ids.push(id);
        }
        // Everybody sweeps once: a deletion makes the server that is on duty look, and an old message shows that it has.
        let old = post_with_key(&members[2], &format!("old {round}")).await.json["message_id"].clone();
        let old = old.as_str().unwrap().to_owned();
        members[2].server.wait_ended(&old).await;
        sqlx::query("update messages set created = '2020-01-01T00:00:00.000Z' where id = $1")
            .bind(&old)
            .execute(&pool)
            .await
            .unwrap();
        sqlx::query("update duties set lease_until = now() - interval '1 second'")
            .execute(&pool)
            .await
            .unwrap();
        let sweeper = &members[round];
        with_timeout(async {
            while sweeper.server.get(&format!("/api/v1/messages/{old}")).await.status != 404 {
                let given = sweeper.server.post("/api/v1/messages", &plain_request()).await;
                let given = given.json["message_id"].as_str().unwrap().to_owned();
                sweeper.server.wait_ended(&given).await;
                let path = format!("/api/v1/messages/{given}");
                assert_eq!(sweeper.server.call("delete", &path, None).await.status, 204);
            }
        })
        .await;
        for id in &ids {
            let record = members[round].server.get(&format!("/api/v1/messages/{id}")).await;
            assert_eq!(record.status, 200, "round {round}: it is kept: {}", record.text);
        }
    }
    // Times are those of the database.
    let wrong = "select count(*) from messages where cast(created as timestamptz) \
         not between now() - interval '1 hour' and now() + interval '1 hour'";
    assert_eq!(sqlx::query_scalar::<_, i64>(wrong).fetch_one(&pool).await.unwrap(), 0);
    for member in &members {
        assert_eq!(member.server.metric("tambour_takeovers_total").await, 0);
        assert_eq!(member.server.get("/readyz").await.status, 200);
    }
}

/// Streams go on while the clock of the server that writes them jumps.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_go_on_when_the_clock_of_their_server_jumps() {
    let mock = MockServer::start_with(|request| {
        let is_short = request.body.to_string().contains("short");
        long_reply(if is_short { 1 } else { 50 }, 30)
    });
    let mock = mock.await;
    let url = postgres().await.new_database().await;
    let folder = crate::server::Folder::new();
    let file = folder.write_file("clock", "+0");
    let setup = Setup { variables: clock_variables(&file), ..Setup::new(&url, &mock) };
    let members = [Member::start_with(&setup), Member::start(&url, &mock)];
    let mut readers = Readers::new(members.iter().map(|member| member.server.address).collect(), 4);
    readers.start_plain(20);
    readers.wait_for(|progress| progress.begun == 20).await;
    for offset in ["+2h", "-2h", "+1000d", "+0"] {
        std::fs::write(&file, offset).unwrap();
        let entries = readers.progress().entries;
        readers.wait_for(|progress| progress.entries > entries + 40).await;
    }
    let histories = readers.finish().await;
    readers.check(members[1].server.address, &histories, "a jump of the clock").await;
    assert!(histories.iter().all(super::readers::History::is_completed));
    for member in &members {
        assert_eq!(member.server.metric("tambour_takeovers_total").await, 0);
    }
    // The order of the messages of a conversation is that in which they were posted.
    let mut request = plain_request();
    request["text"] = json!("short");
    let first = members[1].server.post("/api/v1/messages", &request).await.json;
    let conversation = first["conversation_id"].as_str().unwrap().to_owned();
    let mut ids = vec![first["message_id"].clone()];
    for (at, offset) in ["-2h", "+2h", "-1000d"].into_iter().enumerate() {
        std::fs::write(&file, offset).unwrap();
        request["conversation_id"] = json!(conversation);
        ids.push(members[at % 2].server.post("/api/v1/messages", &request).await.json["message_id"].clone());
    }
    for id in &ids {
        let log = members[1].server.follow(id.as_str().unwrap(), &[]).await.read_rest().await;
        check_stream(&log);
    }
    let listing = members[0].server.get(&format!("/api/v1/conversations/{conversation}")).await.json;
    let listed: Vec<_> =
        listing["messages"].as_array().unwrap().iter().map(|row| row["message_id"].clone()).collect();
    assert_eq!(listed, ids, "{listing}");
}
