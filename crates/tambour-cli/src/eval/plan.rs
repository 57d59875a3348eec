//! Plan of an evaluation: its sources, contracts and prompts, and the pairs of them that are measured.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use serde_json::{Value, json};
use tambour::texts::{format_count, list_names};
use tambour_server::Config;
use tambour_server::upstream::urls::mask_url;
use tambour_server::upstream::{Constrain, ModelRequest, Price, Timeouts, UpstreamConfig, UpstreamKind};

use super::file::{EvalFile, SourceSection};
use super::judge::ReplyContract;
use super::prompts::PromptSet;
use super::recorded;
use super::reply::ReplyRecord;
use crate::output;

/// Plan of an evaluation.
pub(super) struct EvalPlan {
    /// Name in reports: that of the file.
    pub(super) name: String,
    pub(super) prompts: PromptSet,
    pub(super) contracts: Vec<ReplyContract>,
    pub(super) sources: Vec<EvalSource>,
    /// Pairs in the order of the report.
    pub(super) pairs: Vec<EvalPair>,
    index: HashMap<PairKey, usize>,
    /// Everything that the replies of a run depend on, as JSON.
    pub(super) manifest: Value,
    pub(super) parallel: usize,
    pub(super) currency: String,
    pub(super) timeouts: Timeouts,
    /// Contents of the file.
    pub(super) file: EvalFile,
    /// Folder of the file.
    pub(super) folder: PathBuf,
}

/// Source of replies.
pub(super) struct EvalSource {
    pub(super) name: String,
    pub(super) kind: SourceKind,
    pub(super) prices: BTreeMap<String, Price>,
    pub(super) max_reasks: u32,
}

/// Kind of a source.
pub(super) enum SourceKind {
    /// Model that is asked.
    Upstream(Box<ModelSource>),
    /// File of recorded replies.
    Recorded(PathBuf),
}

/// Model that is asked.
pub(super) struct ModelSource {
    /// Name of the upstream.
    pub(super) upstream: String,
    pub(super) config: UpstreamConfig,
    /// Request without messages and dialect.
    pub(super) request: ModelRequest,
    pub(super) system_prompt: Option<String>,
    /// True if the format instructions of the dialect are added to the system prompt.
    pub(super) instructions: bool,
    /// Options of the alias, which override those of the file.
    pub(super) overrides: BTreeMap<String, Value>,
}

/// Prompt for one source and dialect.
pub(super) struct EvalPair {
    pub(super) source: usize,
    pub(super) contract: usize,
    pub(super) model: Arc<str>,
    pub(super) prompt_id: Arc<str>,
    /// Index of the prompt; `None` for recorded replies.
    pub(super) prompt: Option<usize>,
}

/// Key of a pair: source, dialect, model and prompt.
type PairKey = (usize, &'static str, Arc<str>, Arc<str>);

/// Version of the manifest and of the files of a run.
const RUN_VERSION: u32 = 1;
/// Maximum number of pairs.
const MAX_PAIRS: usize = 1_000_000;
/// Model of an upstream that names none.
const DEFAULT_MODEL: &str = "default";

impl EvalPlan {
    /// Reads the file of an evaluation, and all that it names.
    ///
    /// # Errors
    /// A file cannot be read or has a fault, or a name is unknown.
    pub(super) fn read(path: &Path, parallel: Option<usize>) -> Result<EvalPlan> {
        let file = EvalFile::read(path)?;
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        let asks_models = file.sources.iter().any(|source| source.recorded.is_none());
        let prompts = match &file.prompts {
            Some(section) if asks_models => PromptSet::read(&folder.join(&section.path))?,
            None if asks_models => bail!(
                "{}: upstreams and aliases need `[prompts]` with the `path` of the prompts",
                path.display()
            ),
            _ => PromptSet::default(),
        };
        let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let mut plan = EvalPlan {
            name,
            prompts,
            contracts: Vec::new(),
            sources: Vec::new(),
            pairs: Vec::new(),
            index: HashMap::new(),
            manifest: Value::Null,
            parallel: parallel.unwrap_or(file.parallel),
            currency: "USD".to_owned(),
            timeouts: file.timeouts.unwrap_or_default(),
            file,
            folder: folder.clone(),
        };
        plan.add_sources(&folder).with_context(|| path.display().to_string())?;
        Ok(plan)
    }

    /// Returns what figures depend on besides the sources: contract, prompts, parameters and re-asks.
    pub(super) fn basis(&self) -> Value {
        let names = ["contract", "prompts", "request", "max_reasks"];
        names.into_iter().map(|name| (name.to_owned(), self.manifest[name].clone())).collect()
    }

    /// Returns the index of the pair that a reply of a run belongs to; `None` if it is none of this plan.
    pub(super) fn pair_of(&self, record: &ReplyRecord) -> Option<usize> {
        let source = self.sources.iter().position(|source| source.name == record.source)?;
        self.find_pair(source, record)
    }

    /// Returns the index of the pair of a reply of the source with this index.
    pub(super) fn find_pair(&self, source: usize, record: &ReplyRecord) -> Option<usize> {
        let dialect = tambour::dialect::find_dialect(&record.protocol).ok()?.name;
        let key = (source, dialect, record.model.as_str().into(), record.prompt_id.as_str().into());
        self.index.get(&key).copied()
    }

    /// Completes a recorded reply of a source: its source, model, dialect and id. Returns `false` if its
    /// dialect is not measured.
    ///
    /// # Errors
    /// The reply has no dialect, and the contract has none.
    pub(super) fn complete_recorded(&self, source: usize, record: &mut ReplyRecord) -> Result<bool> {
        let dialects = self.file.contract.names();
        let source_name = &self.sources[source].name;
        record.source.clone_from(source_name);
        if record.model.is_empty() {
            record.model.clone_from(source_name);
        }
        if record.protocol.is_empty() {
            let Some(dialect) = dialects.first() else {
                bail!("the reply names no `protocol`, and the file has no `contract.dialect`");
            };
            record.protocol = (*dialect).to_owned();
        }
        record.id = record_id(record);
        Ok(dialects.is_empty() || dialects.contains(&record.protocol.as_str()))
    }

    fn add_sources(&mut self, folder: &Path) -> Result<()> {
        let sections = self.file.sources.clone();
        let needs_config = |source: &SourceSection| {
            let is_known = |name: &String| name.contains('=') || self.file.upstreams.contains_key(name);
            source.alias.is_some() || source.upstream.as_ref().is_some_and(|name| !is_known(name))
        };
        let config = if self.file.config.is_some() || sections.iter().any(needs_config) {
            let path = self.file.config.as_ref().map(|path| folder.join(path));
            Config::load(path.as_deref(), crate::serve::read_environment()?.into_iter())?
        } else {
            Config::default()
        };
        if self.file.timeouts.is_none() {
            self.timeouts = config.timeouts;
        }
        self.currency = self.file.currency.clone().unwrap_or_else(|| config.currency.clone());
        let mut source_entries = Vec::new();
        for (number, section) in (1..).zip(&sections) {
            let entry = match &section.recorded {
                Some(file) => self.add_recorded(section, &folder.join(file), folder),
                None => self.add_model(section, &config, folder),
            };
            source_entries.push(entry.with_context(|| format!("source {number}"))?);
        }
        self.manifest = json!({
            "version": RUN_VERSION,
            "contract": self.contract_entry(folder)?,
            "prompts": self.prompt_entry(),
            "request": self.file.request,
            "max_reasks": self.file.max_reasks,
            "sources": source_entries,
        });
        Ok(())
    }

    /// Describes the contract for the manifest.
    fn contract_entry(&self, folder: &Path) -> Result<Value> {
        let contract = &self.file.contract;
        let hash = |file: &Option<PathBuf>| {
            file.as_ref().map(|file| recorded::hash_file(&folder.join(file))).transpose()
        };
        Ok(json!({
            "dialects": contract.names(),
            "profile": contract.profile.as_deref().unwrap_or("strict"),
            "options": contract.options,
            "tools": hash(&contract.tools)?,
            "structure": hash(&contract.structure)?,
        }))
    }

    /// Describes the prompts for the manifest.
    fn prompt_entry(&self) -> Value {
        let Some(section) = self.file.prompts.as_ref().filter(|_| !self.prompts.prompts.is_empty()) else {
            return Value::Null;
        };
        json!({
            "count": self.prompts.prompts.len(),
            "sha256": self.prompts.hash,
            "system_prompt": section.system_prompt,
            "instructions": section.instructions,
        })
    }

    /// Adds a source, whose name must be new.
    fn push_source(&mut self, source: EvalSource) -> Result<usize> {
        if self.sources.iter().any(|other| other.name == source.name) {
            bail!("two sources are called `{}`; give one of them another `name`", source.name);
        }
        self.sources.push(source);
        Ok(self.sources.len() - 1)
    }

    fn push_pair(&mut self, pair: EvalPair) -> Result<()> {
        let dialect = self.contracts[pair.contract].entry.name;
        let key = (pair.source, dialect, pair.model.clone(), pair.prompt_id.clone());
        if self.pairs.len() == MAX_PAIRS {
            bail!("at most {MAX_PAIRS} replies");
        }
        if self.index.insert(key, self.pairs.len()).is_some() {
            bail!("the id `{}` occurs twice", pair.prompt_id);
        }
        self.pairs.push(pair);
        Ok(())
    }

    /// Adds an upstream or alias, and its pairs. Returns its entry of the manifest.
    fn add_model(&mut self, section: &SourceSection, config: &Config, folder: &Path) -> Result<Value> {
        let prompts = self.file.prompts.as_ref().context("there are no prompts")?;
        let (mut system_prompt, mut instructions) = (prompts.system_prompt.clone(), prompts.instructions);
        let (mut overrides, mut max_reasks) = (BTreeMap::new(), self.file.max_reasks);
        let mut constrain = self.file.request.constrain;
        let mut dialects: Vec<String> = self.file.contract.names().into_iter().map(str::to_owned).collect();
        let (mut upstream, mut model) = (section.upstream.clone(), section.model.clone());
        if let Some(name) = &section.alias {
            let alias = config.aliases.get(name).ok_or_else(|| {
                let known_names = list_names(name, config.aliases.keys().map(String::as_str));
                anyhow!("there is no alias `{name}`; known: {known_names}")
            })?;
            let has_skein = alias.skein.is_some();
            if has_skein || alias.tools.is_some() {
                let field = if has_skein { "skein" } else { "tools" };
                bail!(
                    "the alias `{name}` has `{field}`, which only a server has; give the contract and prompts here"
                );
            }
            upstream = alias.upstream.clone().or_else(|| config.default_upstream().map(str::to_owned));
            model.clone_from(&alias.model);
            system_prompt = alias.system_prompt.clone().or(system_prompt);
            instructions = alias.instructions.unwrap_or(instructions);
            max_reasks = alias.max_reasks.unwrap_or(max_reasks);
            constrain = constrain.or(alias.constrain);
            if let Some(dialect) = &alias.dialect {
                dialects = vec![dialect.clone()];
            }
            if let Some(Value::Object(options)) = alias.contract.as_ref().and_then(|it| it.get("options")) {
                overrides = options.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
            }
        }
        if dialects.is_empty() {
            bail!("`contract.dialect` is missing: it says what the replies are read as");
        }
        let upstream = upstream.context("there is no upstream")?;
        let (upstream, upstream_config) = self.find_upstream(&upstream, config)?;
        let name = match (&section.name, &section.alias, &section.model) {
            (Some(name), _, _) | (None, Some(name), _) => name.clone(),
            (None, None, Some(model)) => format!("{upstream}/{model}"),
            (None, None, None) => upstream.clone(),
        };
        let shown_model: Arc<str> =
            model.as_deref().or(upstream_config.model.as_deref()).unwrap_or(DEFAULT_MODEL).into();
        let parameters = &self.file.request;
        let request = ModelRequest {
            model,
            temperature: parameters.temperature,
            max_tokens: parameters.max_tokens,
            top_p: parameters.top_p,
            seed: parameters.seed,
            ..ModelRequest::default()
        };
        let mut entry = json!({
            "name": name,
            "upstream": {"kind": upstream_config.kind, "url": mask_url(&upstream_config.url)},
            "model": shown_model, "dialects": dialects, "options": overrides, "max_reasks": max_reasks,
            "system_prompt": system_prompt, "instructions": instructions,
        });
        let constrain = constrain.or(upstream_config.constrain).unwrap_or_default();
        if constrain != Constrain::Off {
            entry["constrain"] = constrain.name().into();
        }
        let prices = upstream_config.prices.clone();
        let model_source = ModelSource {
            upstream,
            config: upstream_config,
            request,
            system_prompt,
            instructions,
            overrides: overrides.clone(),
        };
        let kind = SourceKind::Upstream(Box::new(model_source));
        let source = self.push_source(EvalSource { name, kind, prices, max_reasks })?;
        for dialect in &dialects {
            let mut contract =
                ReplyContract::new(dialect, &self.file.contract, folder, &overrides, instructions)?;
            if contract.entry.prompt.is_none() {
                contract = ReplyContract::new(dialect, &self.file.contract, folder, &overrides, false)?;
            }
            contract.add_forms(constrain)?;
            self.contracts.push(contract);
            let contract = self.contracts.len() - 1;
            for index in 0..self.prompts.prompts.len() {
                let prompt_id = self.prompts.prompts[index].id.as_str().into();
                let model = shown_model.clone();
                self.push_pair(EvalPair { source, contract, model, prompt_id, prompt: Some(index) })?;
            }
        }
        Ok(entry)
    }

    /// Finds an upstream of this file or of the configuration, or reads one given as `KIND=URL`.
    fn find_upstream(&self, name: &str, config: &Config) -> Result<(String, UpstreamConfig)> {
        let found = self.file.upstreams.get(name).or_else(|| config.upstreams.get(name));
        let (name, upstream) = match found {
            Some(upstream) => (name.to_owned(), upstream.clone()),
            None if name.contains('=') => {
                let upstream = UpstreamConfig::from_argument(name, None)?;
                (upstream.kind.clone(), upstream)
            }
            None => {
                let names = self.file.upstreams.keys().chain(config.upstreams.keys()).map(String::as_str);
                bail!("there is no upstream `{name}`; known: {}", list_names(name, names));
            }
        };
        // Recordings are played in turn, whatever is asked, so a run could not be continued.
        if matches!(UpstreamKind::from_name(&upstream.kind), Some(UpstreamKind::Replay | UpstreamKind::Demo))
        {
            bail!("the upstream `{name}` plays recordings; give their file as `recorded` instead");
        }
        Ok((name, upstream))
    }

    /// Adds a file of recorded replies, and its pairs. Returns its entry of the manifest.
    fn add_recorded(&mut self, section: &SourceSection, path: &Path, folder: &Path) -> Result<Value> {
        if path.is_dir() {
            bail!(
                "{} is a folder; `tambour eval FILE --record DIR` writes the replies of a run as files",
                path.display()
            );
        }
        let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let name = section.name.clone().unwrap_or(stem);
        let hash = recorded::hash_file(path)?;
        let source = self.push_source(EvalSource {
            name: name.clone(),
            kind: SourceKind::Recorded(path.to_owned()),
            prices: section.prices.as_ref().unwrap_or(&self.file.prices).clone(),
            max_reasks: self.file.max_reasks,
        })?;
        let (mut contracts, mut count, mut left_out) = (HashMap::new(), 0, 0);
        recorded::read_groups(path, |mut group, place| {
            let record = &mut group.first;
            if !self.complete_recorded(source, record).with_context(|| place.to_owned())? {
                left_out += 1;
                return Ok(());
            }
            let contract = match contracts.get(&record.protocol) {
                Some(contract) => *contract,
                None => {
                    let contract = &self.file.contract;
                    let contract =
                        ReplyContract::new(&record.protocol, contract, folder, &BTreeMap::new(), false)
                            .with_context(|| place.to_owned())?;
                    self.contracts.push(contract);
                    contracts.insert(record.protocol.clone(), self.contracts.len() - 1);
                    self.contracts.len() - 1
                }
            };
            count += 1;
            let (model, prompt_id) = (record.model.as_str().into(), record.prompt_id.as_str().into());
            self.push_pair(EvalPair { source, contract, model, prompt_id, prompt: None })
                .with_context(|| place.to_owned())
        })?;
        if count == 0 {
            bail!("{}: no reply is in a dialect of `contract.dialects`", path.display());
        }
        if left_out > 0 {
            let replies = format_count(left_out, "reply");
            output::print_error(&format!("{}: {replies} of other dialects left out", path.display()));
        }
        Ok(json!({"name": name, "recorded": {"sha256": hash, "replies": count}}))
    }
}

/// Returns the id of a reply in a run.
pub(super) fn record_id(record: &ReplyRecord) -> String {
    let ReplyRecord { source, model, protocol, prompt_id, attempt, .. } = record;
    let id = format!("{source}/{model}/{protocol}/{prompt_id}");
    if *attempt > 1 { format!("{id}/{attempt}") } else { id }
}

/// Returns the path of the first field in which two manifests differ, such as `sources[1].model`.
pub(super) fn first_difference(old: &Value, new: &Value) -> Option<String> {
    let nested = |name: String, old: &Value, new: &Value| {
        first_difference(old, new).map(|path| match path.as_str() {
            "" => name,
            _ if path.starts_with('[') => name + &path,
            _ => format!("{name}.{path}"),
        })
    };
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => old.keys().chain(new.keys()).find_map(|name| {
            let value =
                |object: &serde_json::Map<String, Value>| object.get(name).cloned().unwrap_or_default();
            nested(name.clone(), &value(old), &value(new))
        }),
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => old
            .iter()
            .zip(new)
            .enumerate()
            .find_map(|(index, (old, new))| nested(format!("[{index}]"), old, new)),
        _ if old == new => None,
        _ => Some(String::new()),
    }
}
