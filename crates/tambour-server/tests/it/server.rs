//! A server in the test process, its folder, and waiting.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::Value;
use tambour_server::{Config, ReloadHandle, Server};
use tokio::sync::oneshot;

use crate::client::EventStream;
use crate::mock::MockServer;

/// Awaits a future, and fails after a generous timeout.
pub(crate) async fn with_timeout<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), work).await.expect("it happens in time")
}

/// A folder that is removed when it is dropped.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new() -> Folder {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("tambour-it-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub(crate) fn write_file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// All files below the folder.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let (mut folders, mut files) = (vec![self.0.clone()], Vec::new());
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
                if entry.file_type().unwrap().is_dir() {
                    folders.push(entry.path());
                } else {
                    files.push(entry.path());
                }
            }
        }
        files
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A configuration with short times that listens on a free port.
pub(crate) fn test_config(folder: &Folder) -> Config {
    let mut config = Config::default();
    config.listen = SocketAddr::from(([127, 0, 0, 1], 0));
    config.data = folder.0.join("data");
    config.timeouts.retry_ms = 5;
    config
}

/// A running server.
pub(crate) struct TestServer {
    pub(crate) address: SocketAddr,
    /// `None` for a server in another process.
    reload: Option<ReloadHandle>,
    pub(crate) folder: Folder,
    http: reqwest::Client,
    key: Option<String>,
    stop_signal: Option<oneshot::Sender<()>>,
    task: Option<tokio::task::JoinHandle<()>>,
}

fn http_client() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().build().unwrap()
}

/// An answer: status, headers, JSON.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) json: Value,
    pub(crate) text: String,
}

impl TestServer {
    /// Starts a server with this upstream.
    pub(crate) async fn start_default(mock: &MockServer) -> TestServer {
        TestServer::start(mock, |_| {}).await
    }

    /// Starts a server with this upstream and further settings.
    pub(crate) async fn start(mock: &MockServer, change: impl FnOnce(&mut Config)) -> TestServer {
        let folder = Folder::new();
        let mut config = test_config(&folder);
        config.add_upstream(&mock.url(), Some("a-model".to_owned())).unwrap();
        change(&mut config);
        TestServer::serve(folder, config).await
    }

    /// Starts a server with this configuration.
    pub(crate) async fn serve(folder: Folder, config: Config) -> TestServer {
        TestServer::from_server(folder, Server::start(config).await.expect("the server starts"))
    }

    /// Runs this server in the background.
    pub(crate) fn from_server(folder: Folder, server: Server) -> TestServer {
        let (address, reload) = (server.address(), Some(server.reload_handle()));
        let (stop, stop_received) = oneshot::channel::<()>();
        let task = Some(tokio::spawn(async move {
            let stop = async {
                let _ = stop_received.await;
            };
            server.serve(stop).await.expect("it stops since it was told to");
        }));
        TestServer { address, reload, folder, http: http_client(), key: None, stop_signal: Some(stop), task }
    }

    /// A server of another process.
    pub(crate) fn remote(folder: Folder, address: SocketAddr) -> TestServer {
        TestServer {
            address,
            reload: None,
            folder,
            http: http_client(),
            key: None,
            stop_signal: None,
            task: None,
        }
    }

    /// Handle that replaces the configuration.
    pub(crate) fn reload_handle(&self) -> &ReloadHandle {
        self.reload.as_ref().expect("a server of this process")
    }

    /// Sets the key of further requests.
    pub(crate) fn set_key(&mut self, key: Option<&str>) {
        self.key = key.map(str::to_owned);
    }

    /// Tells the server to stop, and does not wait.
    pub(crate) fn request_stop(&mut self) {
        self.stop_signal.take().unwrap().send(()).unwrap();
    }

    /// Stops, and returns the folder.
    pub(crate) async fn stop(mut self) -> Folder {
        if let Some(stop) = self.stop_signal.take() {
            let _ = stop.send(());
        }
        if let Some(task) = self.task {
            with_timeout(task).await.unwrap();
        }
        self.folder
    }

    pub(crate) async fn call(&self, method: &str, path: &str, body: Option<&str>) -> Answer {
        self.call_with(method, path, body, &[]).await
    }

    pub(crate) async fn call_with(
        &self,
        method: &str,
        path: &str,
        body: Option<&str>,
        headers: &[(&str, &str)],
    ) -> Answer {
        let name = method.to_lowercase();
        let method = method.to_uppercase().parse().unwrap();
        let mut request = self.http.request(method, format!("http://{}{path}", self.address));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(key) = &self.key {
            request = request.bearer_auth(key);
        }
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body.to_owned());
        }
        with_timeout(async {
            let answer = request.send().await.unwrap();
            let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
            let text = answer.text().await.unwrap();
            let json = serde_json::from_str(&text).unwrap_or_default();
            crate::openapi::assert_problem_described(&name, path, status, &json);
            Answer { status, headers, json, text }
        })
        .await
    }

    /// Posts a body of any content type.
    pub(crate) async fn post_bytes(&self, path: &str, kind: &str, body: Vec<u8>) -> Answer {
        let request =
            self.http.post(format!("http://{}{path}", self.address)).header("content-type", kind).body(body);
        let answer = with_timeout(request.send()).await.unwrap();
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        let text = with_timeout(answer.text()).await.unwrap();
        let json = serde_json::from_str(&text).unwrap_or_default();
        crate::openapi::assert_problem_described("post", path, status, &json);
        Answer { status, headers, json, text }
    }

    /// An answer that is no text.
    pub(crate) async fn get_bytes(&self, path: &str) -> (u16, reqwest::header::HeaderMap, Vec<u8>) {
        let answer =
            with_timeout(self.http.get(format!("http://{}{path}", self.address)).send()).await.unwrap();
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        (status, headers, with_timeout(answer.bytes()).await.unwrap().to_vec())
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.call("get", path, None).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.call("post", path, Some(&body.to_string())).await
    }

    pub(crate) async fn put(&self, path: &str, body: &Value) -> Answer {
        self.call("put", path, Some(&body.to_string())).await
    }

    /// Begins a request whose answer is read in the background; dropping it breaks the request off.
    pub(crate) async fn begin_post(&self, path: &str, body: &Value) -> PendingAnswer {
        let request = self.http.post(format!("http://{}{path}", self.address)).body(body.to_string());
        PendingAnswer(tokio::spawn(async move { request.send().await.unwrap().text().await.unwrap() }))
    }

    /// The same without a body.
    pub(crate) async fn begin_get(&self, path: &str) -> PendingAnswer {
        let answer =
            with_timeout(self.http.get(format!("http://{}{path}", self.address)).send()).await.unwrap();
        assert_eq!(answer.status(), 200);
        PendingAnswer(tokio::spawn(async move { answer.text().await.unwrap() }))
    }

    /// Opens the stream of a new message.
    pub(crate) async fn open_stream(&self, body: &Value) -> EventStream {
        let mut body = body.clone();
        body["stream"] = true.into();
        EventStream::open(
            self.address,
            "POST",
            "/api/v1/messages",
            &self.headers(&[]),
            Some(&body.to_string()),
        )
        .await
    }

    /// Follows a message.
    pub(crate) async fn follow(&self, id: &str, headers: &[(&str, &str)]) -> EventStream {
        let path = format!("/api/v1/messages/{id}/events");
        EventStream::open(self.address, "GET", &path, &self.headers(headers), None).await
    }

    fn headers(&self, extra_headers: &[(&str, &str)]) -> Vec<(String, String)> {
        let mut headers: Vec<(String, String)> =
            extra_headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        if let Some(key) = &self.key {
            headers.push(("authorization".to_owned(), format!("Bearer {key}")));
        }
        headers
    }

    /// The record of a message, once it has ended and the record is stored.
    pub(crate) async fn wait_ended(&self, id: &str) -> Value {
        with_timeout(async {
            loop {
                let record = self.get(&format!("/api/v1/messages/{id}")).await.json;
                if record["status"] != "running" {
                    return record;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await
    }

    /// A counter or gauge of `/metrics`.
    pub(crate) async fn metric(&self, name: &str) -> u64 {
        let text = self.get("/metrics").await.text;
        let line =
            text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ').map(str::to_owned));
        line.unwrap().parse().unwrap()
    }

    /// Waits until a gauge has a value.
    pub(crate) async fn wait_for_metric(&self, name: &str, value: u64) {
        with_timeout(async {
            // Metrics with labels appear when they are counted first.
            while !self.get("/metrics").await.text.lines().any(|line| line == format!("{name} {value}")) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
    }
}

/// An answer that is being read.
pub(crate) struct PendingAnswer(tokio::task::JoinHandle<String>);

impl PendingAnswer {
    /// The whole answer.
    pub(crate) async fn into_text(mut self) -> String {
        with_timeout(&mut self.0).await.unwrap()
    }
}

impl Drop for PendingAnswer {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Answer {
    /// The code of a problem document; checks that it is one.
    pub(crate) fn problem_code(&self) -> &str {
        assert_eq!(self.headers["content-type"], "application/problem+json", "{}", self.text);
        assert_eq!(self.json["status"], self.status);
        assert!(self.json["title"].is_string() && self.json["detail"].is_string(), "{}", self.text);
        self.json["code"].as_str().unwrap()
    }
}
