//! `tambour migrate` updates the schema of a database; `tambour move` moves all data from one to another.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use tambour_server::store::{
    MoveProgress, PostgresOptions, PostgresStore, SqliteStore, Store as _, StoreOptions, move_data,
};

use crate::CommandOutcome;

/// Update the schema of a database to this version, or create it
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  tambour migrate --database sqlite:$(mktemp -d)/tambour.sqlite\n  \
    tambour migrate --database postgres://tambour@db.example/tambour\n\n\
    The password can also come from PGPASSWORD or --password-file.")]
pub(crate) struct MigrateCommand {
    /// Database: `sqlite:FILE` or `postgres://USER@HOST/NAME`
    #[arg(long, value_name = "URL")]
    database: String,
    /// File with the password of the PostgreSQL database
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
}

/// Move all data of a stopped server from SQLite to an empty PostgreSQL database
#[derive(clap::Args)]
#[command(after_help = "Example:\n  tambour move --from sqlite:tambour-data/tambour.sqlite \
    --to postgres://tambour@db.example/tambour\n\n\
    A move that was interrupted continues when it is started again. At the end all rows of both databases are \
    compared; the source stays as it is.")]
pub(crate) struct MoveCommand {
    /// Database to read: `sqlite:FILE`
    #[arg(long, value_name = "URL")]
    from: String,
    /// Database to fill: `postgres://USER@HOST/NAME`
    #[arg(long, value_name = "URL")]
    to: String,
    /// File with the password of the PostgreSQL database
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
}

/// Database that a URL names.
enum DatabaseUrl<'a> {
    Sqlite(&'a Path),
    Postgres(&'a str),
}

impl<'a> DatabaseUrl<'a> {
    fn parse(url: &'a str) -> Result<DatabaseUrl<'a>> {
        if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            return Ok(DatabaseUrl::Postgres(url));
        }
        match url.strip_prefix("sqlite://").or_else(|| url.strip_prefix("sqlite:")) {
            Some(file) if !file.is_empty() => Ok(DatabaseUrl::Sqlite(Path::new(file))),
            _ => bail!("a database is sqlite:FILE or postgres://USER@HOST/NAME"),
        }
    }
}

pub(crate) fn migrate(args: &MigrateCommand) -> Result<CommandOutcome> {
    block_on(async {
        match DatabaseUrl::parse(&args.database)? {
            DatabaseUrl::Sqlite(file) => open_sqlite(file).await?.close().await,
            DatabaseUrl::Postgres(url) => {
                PostgresStore::migrate(&postgres_options(url, args.password_file.as_deref())?).await?;
            }
        }
        println!("the schema is up to date");
        Ok(CommandOutcome::Success)
    })
}

pub(crate) fn move_all(args: &MoveCommand) -> Result<CommandOutcome> {
    let DatabaseUrl::Sqlite(file) = DatabaseUrl::parse(&args.from)? else {
        bail!("--from takes sqlite:FILE");
    };
    let DatabaseUrl::Postgres(url) = DatabaseUrl::parse(&args.to)? else {
        bail!("--to takes postgres://USER@HOST/NAME");
    };
    if !file.is_file() {
        bail!("{}: there is no such file", file.display());
    }
    let options = postgres_options(url, args.password_file.as_deref())?;
    block_on(async {
        let source = open_sqlite(file).await?;
        let target = PostgresStore::open(&options).await?;
        let bar = ProgressBar::new(0);
        let style = ProgressStyle::with_template("{msg:28} {bar:30} {human_pos}/{human_len} rows {eta}")
            .expect("the template is valid");
        bar.set_style(style);
        let result = move_data(&source, &target, |progress| show_progress(&bar, progress)).await;
        bar.finish_and_clear();
        target.close().await;
        source.close().await;
        println!("{} rows were moved and compared", result?);
        Ok(CommandOutcome::Success)
    })
}

/// Shows the progress of a table.
fn show_progress(bar: &ProgressBar, progress: MoveProgress) {
    let verb = if progress.is_comparison { "comparing" } else { "moving" };
    bar.set_length(progress.total_rows);
    bar.set_message(format!("{verb} {}", progress.table));
    bar.set_position(progress.done_rows);
}

/// Opens a SQLite database. No server may use the database at the same time.
async fn open_sqlite(file: &Path) -> Result<SqliteStore> {
    let options = StoreOptions { durable: true, accept_loss: false };
    let (store, report) = SqliteStore::open_with(file, options).await?;
    store.reserve_numbers(&report).await?;
    Ok(store)
}

fn postgres_options(url: &str, password_file: Option<&Path>) -> Result<PostgresOptions> {
    let mut options = PostgresOptions::new(url.to_owned());
    if let Some(file) = password_file {
        let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
        options.password = Some(text.trim_end_matches(['\r', '\n']).to_owned());
    }
    Ok(options)
}

fn block_on<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.context("the runtime cannot be started")?.block_on(work)
}
