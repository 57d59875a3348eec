//! PostgreSQL for tests: one cluster a process, which goes with it, and a new database for each test.

use std::fs::Permissions;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use tambour_server::store::{PostgresOptions, PostgresStore, Store as _};
use tokio::sync::OnceCell;

/// User and group `nobody`, which run the programs if the tests run as root: they refuse to.
const NOBODY: u32 = 65534;

/// Name of the database with the current schema, from which the others are copied.
const TEMPLATE: &str = "tambour_template";

/// Cluster, which goes with its owner, at the latest with this process.
pub(crate) struct Cluster {
    folder: PathBuf,
    port: u16,
    is_root: bool,
    /// Further settings, `NAME=VALUE`.
    settings: &'static [&'static str],
    /// Shell that watches over the server, and the pipe whose end stops it.
    server: Mutex<Option<(Child, ChildStdin)>>,
}

/// Returns the cluster of this process.
pub(crate) async fn cluster() -> &'static Cluster {
    static CLUSTER: OnceCell<Cluster> = OnceCell::const_new();
    CLUSTER.get_or_init(Cluster::start).await
}

impl Cluster {
    /// Makes the folder of a cluster that does not run yet.
    fn new() -> Cluster {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name =
            format!("tambour-postgres-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder).unwrap();
        let is_root = std::fs::metadata(&folder).unwrap().uid() == 0;
        if is_root {
            chown(&folder, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        std::fs::set_permissions(&folder, Permissions::from_mode(0o700)).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        Cluster { folder, port, is_root, settings: &[], server: Mutex::new(None) }
    }

    /// Runs a program of PostgreSQL to its end.
    fn run(&self, program: &str, arguments: &[&str]) {
        let mut command = command(&programs_folder().join(program), self.is_root, &self.folder);
        let output = command.args(arguments).output().expect("the program runs");
        assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Starts a cluster.
    pub(crate) async fn start() -> Cluster {
        Cluster::start_with(&[]).await
    }

    /// Starts a cluster with further settings, `NAME=VALUE`.
    pub(crate) async fn start_with(settings: &'static [&'static str]) -> Cluster {
        let cluster = Cluster { settings, ..Cluster::new() };
        cluster.run(
            "initdb",
            &[
                "--auth=trust",
                "--username=tambour",
                "--encoding=UTF8",
                "--locale=C",
                "--no-sync",
                // Small files of its log: a test limits the size of files.
                "--wal-segsize=1",
                "-D",
                "data",
            ],
        );
        let mut connection = cluster.start_server().await;
        sqlx::query(AssertSqlSafe(format!("create database {TEMPLATE}")))
            .execute(&mut connection)
            .await
            .unwrap();
        let store = PostgresStore::open(&PostgresOptions::new(cluster.url(TEMPLATE))).await.unwrap();
        store.close().await;
        cluster
    }

    /// Starts a standby, for which the commits of this cluster wait from now on.
    pub(crate) async fn start_standby(&self) -> Cluster {
        let standby = Cluster::new();
        let port = self.port.to_string();
        standby.run(
            "pg_basebackup",
            &[
                "-h",
                "127.0.0.1",
                "-p",
                &port,
                "-U",
                "tambour",
                "-D",
                "data",
                "--write-recovery-conf",
                "--no-sync",
                "--checkpoint=fast",
            ],
        );
        standby.start_server().await;
        let mut connection = PgConnection::connect(&self.url("postgres")).await.unwrap();
        for statement in ["alter system set synchronous_standby_names = '*'", "select pg_reload_conf()"] {
            sqlx::query(statement).execute(&mut connection).await.unwrap();
        }
        loop {
            let query = "select exists (select 1 from pg_stat_replication where sync_state = 'sync')";
            if sqlx::query_scalar(query).fetch_one(&mut connection).await.unwrap() {
                return standby;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }

    /// Makes a standby a cluster of its own.
    pub(crate) async fn promote(&self) {
        let mut connection = PgConnection::connect(&self.url("postgres")).await.unwrap();
        for statement in [
            "alter system set synchronous_standby_names = ''",
            "select pg_reload_conf()",
            "select pg_promote()",
        ] {
            sqlx::query(statement).execute(&mut connection).await.unwrap();
        }
    }

    /// Returns the port of the server.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Starts the server, and waits until it accepts connections.
    pub(crate) async fn start_server(&self) -> PgConnection {
        let _ = std::fs::remove_file(self.folder.join("keep"));
        let mut server = start_server(&self.folder, self.port, self.is_root, self.settings);
        let lifeline = server.stdin.take().unwrap();
        let connection = self.first_connection(&mut server).await;
        *self.server.lock().unwrap() = Some((server, lifeline));
        connection
    }

    /// Executes statements in a database.
    pub(crate) async fn execute(&self, url: &str, statements: &[&str]) {
        let mut connection = PgConnection::connect(url).await.unwrap();
        for statement in statements {
            sqlx::query(AssertSqlSafe(*statement)).execute(&mut connection).await.unwrap();
        }
    }

    /// Makes every commit wait for so many microseconds, as a slow disk does; it takes `fsync=on`.
    pub(crate) async fn set_commit_delay(&self, microseconds: u32) {
        let delay = format!("alter system set commit_delay = {microseconds}");
        let statements = [&*delay, "alter system set commit_siblings = 0", "select pg_reload_conf()"];
        self.execute(&self.url("postgres"), &statements).await;
    }

    /// Limits the size of files of all processes of the server; `None` lifts the limit.
    #[cfg(target_os = "linux")]
    pub(crate) fn limit_files(&self, bytes: Option<u64>) {
        let file = std::fs::read_to_string(self.folder.join("data").join("postmaster.pid")).unwrap();
        let server = file.lines().next().unwrap().trim();
        let limit = format!("--fsize={}:", bytes.map_or("unlimited".to_owned(), |bytes| bytes.to_string()));
        // As the user of the server, who needs no rights for that.
        let set_limit = |process: &str| {
            let mut command = command(Path::new("prlimit"), self.is_root, &self.folder);
            command
                .args(["--pid", process, &limit])
                .output()
                .expect("`prlimit` of util-linux")
                .status
                .success()
        };
        // New processes have the limit of the server, so that it comes first. Others may be gone already.
        assert!(set_limit(server), "the limit is set");
        let children = std::fs::read_to_string(format!("/proc/{server}/task/{server}/children")).unwrap();
        for child in children.split_whitespace() {
            // It may be gone already.
            let _ = set_limit(child);
        }
    }

    /// Stops the server at once, as a crash does; its data stays.
    pub(crate) fn stop_server(&self) {
        std::fs::write(self.folder.join("keep"), "").unwrap();
        let (mut server, lifeline) = self.server.lock().unwrap().take().unwrap();
        drop(lifeline);
        server.wait().unwrap();
    }

    /// Connects as soon as the server accepts connections.
    async fn first_connection(&self, server: &mut Child) -> PgConnection {
        loop {
            if let Ok(connection) = PgConnection::connect(&self.url("postgres")).await {
                return connection;
            }
            if let Ok(Some(status)) = server.try_wait() {
                let log = std::fs::read_to_string(self.folder.join("log")).unwrap_or_default();
                panic!("postgres has ended with {status}: {log}");
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }

    /// Returns the URL of a database.
    pub(crate) fn url(&self, database: &str) -> String {
        format!("postgres://tambour@127.0.0.1:{}/{database}", self.port)
    }

    /// Creates a database with the current schema, and returns its URL.
    pub(crate) async fn new_database(&self) -> String {
        self.copy_database(TEMPLATE).await
    }

    /// Creates an empty database, and returns its URL.
    pub(crate) async fn empty_database(&self) -> String {
        self.copy_database("template0").await
    }

    async fn copy_database(&self, template: &str) -> String {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("test_{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let mut connection = PgConnection::connect(&self.url("postgres")).await.unwrap();
        let statement = format!("create database {name} template {template}");
        sqlx::query(AssertSqlSafe(statement)).execute(&mut connection).await.unwrap();
        self.url(&name)
    }
}

/// Returns the port in the URL of a database.
pub(crate) fn port_of(url: &str) -> u16 {
    let (_, rest) = url.split_once("@127.0.0.1:").unwrap();
    rest.split('/').next().unwrap().parse().unwrap()
}

/// Starts the server under a shell, which stops it and removes its folder when this process has ended.
fn start_server(folder: &Path, port: u16, is_root: bool, settings: &[&str]) -> Child {
    const WATCH: &str = r#"folder=$1; shift; "$@" >"$folder/log" 2>&1 & server=$!
        (read -r _; kill -QUIT $server) <&3 & wait $server; status=$?; [ -e "$folder/keep" ] || rm -rf "$folder"; exit $status"#;
    let watch = format!("exec 3<&0; {WATCH}");
    let mut shell = command(Path::new("sh"), is_root, folder);
    shell
        .args(["-c", &watch, "sh"])
        .arg(folder)
        .arg(programs_folder().join("postgres"))
        .arg("-D")
        .arg(folder.join("data"));
    for setting in [
        "listen_addresses=127.0.0.1".to_owned(),
        format!("port={port}"),
        format!("unix_socket_directories={}", folder.display()),
        "max_connections=400".to_owned(),
        "shared_buffers=64MB".to_owned(),
        // Nothing here survives the tests.
        "fsync=off".to_owned(),
        "full_page_writes=off".to_owned(),
        "autovacuum=off".to_owned(),
    ] {
        shell.arg("-c").arg(setting);
    }
    for setting in settings {
        shell.arg("-c").arg(setting);
    }
    shell.stdin(Stdio::piped()).spawn().expect("postgres starts")
}

fn command(program: &Path, is_root: bool, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(folder);
    if is_root {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}

/// Returns the folder with the programs of PostgreSQL.
fn programs_folder() -> PathBuf {
    let in_path = std::env::var_os("PATH").into_iter().flat_map(|path| {
        std::env::split_paths(&path).filter(|folder| folder.join("initdb").exists()).collect::<Vec<_>>()
    });
    // Debian keeps them apart by version.
    let by_version = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let by_version =
        by_version.map(|entry| entry.path().join("bin")).filter(|folder| folder.join("initdb").exists());
    let folder = in_path.chain(by_version).next();
    let folder = folder.expect("PostgreSQL is installed: `cargo xtask test` installs it");
    // A link to one of the programs leads to the others.
    folder.join("initdb").canonicalize().unwrap().parent().unwrap().to_owned()
}
