//! API keys, callers and owners (invariant 11 of ARCHITECTURE.md). A key belongs to an owner, as does
//! everything created with the key; the owner and these things outlive the key.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use tokio_util::sync::CancellationToken;

use crate::base::connection::Connection;
use crate::base::ids;
use crate::base::memory::MemoryHold;
use crate::run::quotas::{self, KeyLimits};
use crate::store::KeyRow;
use crate::telemetry::ParentSpan;

/// Registry of API keys. Has only the hashes of keys, never their secret texts.
pub(crate) struct KeyRegistry {
    keys: RwLock<Vec<ActiveKey>>,
    /// Tokens for event streams, by the hash of their text.
    tokens: Mutex<HashMap<Vec<u8>, StreamToken>>,
    /// True if requests without a key are admitted while there is none.
    admits_local_user: bool,
    /// Serializes changes of keys, so that the check before a change still holds when the change is made.
    pub(crate) change_lock: tokio::sync::Mutex<()>,
}

/// Key with what its requests share.
struct ActiveKey {
    key: KeyRow,
    limits: Arc<KeyLimits>,
    /// Cancelled when the key is removed.
    removal: CancellationToken,
}

/// Permission to read the events of one message.
struct StreamToken {
    /// Id of the message.
    message: String,
    /// Caller that created the token.
    caller: Caller,
    expires_at: Instant,
}

/// Owner and key id of all requests while no key exists.
pub(crate) const LOCAL_OWNER: &str = "local";
/// Id and owner of the configured key.
pub(crate) const CONFIGURED_KEY: &str = "configured";
/// Lifetime of a token for an event stream.
pub(crate) const TOKEN_LIFETIME: Duration = Duration::from_secs(300);

/// Authenticated client of a request.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    /// Owner of everything this caller creates.
    pub(crate) owner: String,
    /// Id of the key; `local` while no key exists.
    pub(crate) key: String,
    /// True if the caller may change settings and keys.
    pub(crate) is_admin: bool,
    /// Limits of the key.
    pub(crate) limits: Arc<KeyLimits>,
    /// Cancelled when the key is removed.
    pub(crate) removal: CancellationToken,
    /// Connection of the request, set after the key was checked.
    pub(crate) connection: Option<Arc<Connection>>,
    /// Parent of the tracing spans of the request.
    pub(crate) span: ParentSpan,
    /// Memory reserved for the request.
    pub(crate) memory: MemoryHold,
}

impl KeyRegistry {
    /// Creates the registry of the stored keys and the key of the configuration.
    #[must_use]
    pub(crate) fn new(mut rows: Vec<KeyRow>, configured_key: Option<&str>) -> KeyRegistry {
        rows.extend(configured_key.map(|secret| KeyRow {
            id: CONFIGURED_KEY.into(),
            owner: CONFIGURED_KEY.into(),
            name: CONFIGURED_KEY.into(),
            hash: hash(secret),
            is_admin: true,
            created: ids::now(),
            limits: None,
        }));
        let keys = rows.into_iter().map(ActiveKey::new).collect();
        KeyRegistry {
            keys: RwLock::new(keys),
            tokens: Mutex::default(),
            admits_local_user: true,
            change_lock: tokio::sync::Mutex::default(),
        }
    }

    /// Admits no request without a key, even if all keys are removed: other machines reach the server.
    #[must_use]
    pub(crate) fn without_local_user(self) -> KeyRegistry {
        KeyRegistry { admits_local_user: false, ..self }
    }

    fn read_keys(&self) -> RwLockReadGuard<'_, Vec<ActiveKey>> {
        self.keys.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_tokens(&self) -> MutexGuard<'_, HashMap<Vec<u8>, StreamToken>> {
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns `true` if there is no key.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.read_keys().is_empty()
    }

    /// Returns `true` if the key of a caller still exists. While there is no key, only the local user
    /// (`LOCAL_OWNER`) can be admitted.
    pub(crate) fn is_admitted(&self, caller: &Caller) -> bool {
        let keys = self.read_keys();
        if keys.is_empty() {
            self.admits_local_user && caller.key == LOCAL_OWNER
        } else {
            keys.iter().any(|active| active.key.id == caller.key)
        }
    }

    /// Returns `true` if a caller may still change keys.
    pub(crate) fn can_change(&self, caller: &Caller) -> bool {
        let keys = self.read_keys();
        if keys.is_empty() {
            self.admits_local_user && caller.key == LOCAL_OWNER
        } else {
            keys.iter().any(|active| active.key.id == caller.key && active.key.is_admin)
        }
    }

    /// Returns the caller whose key has this secret text. While no key exists, every request is admitted as
    /// `LOCAL_OWNER`, if the registry admits the local user. Compares with every key, each in constant time,
    /// so that the time of a response reveals nothing.
    pub(crate) fn find_caller(&self, secret: Option<&str>) -> Option<Caller> {
        let keys = self.read_keys();
        if keys.is_empty() && self.admits_local_user {
            let (owner, key) = (LOCAL_OWNER.to_owned(), LOCAL_OWNER.to_owned());
            return Some(Caller {
                owner,
                key,
                is_admin: true,
                limits: quotas::unlimited(),
                removal: CancellationToken::new(),
                connection: None,
                span: ParentSpan::default(),
                memory: MemoryHold::default(),
            });
        }
        let hash = hash(secret?);
        let mut found_caller = None;
        for active in keys.iter() {
            if bool::from(active.key.hash.as_slice().ct_eq(hash.as_slice())) {
                found_caller = Some(active.caller());
            }
        }
        found_caller
    }

    /// Returns the name of a key, or its id if it is not known.
    pub(crate) fn key_name(&self, id: &str) -> String {
        let keys = self.read_keys();
        let active_key = keys.iter().find(|active| active.key.id == id);
        active_key.map_or_else(|| id.to_owned(), |active| active.key.name.clone())
    }

    /// Adds a key.
    pub(crate) fn add(&self, key: KeyRow) {
        self.keys.write().unwrap_or_else(PoisonError::into_inner).push(ActiveKey::new(key));
    }

    /// Replaces the key with the same id, for new requests. Its streams and runs continue.
    pub(crate) fn change(&self, key: KeyRow) {
        let mut keys = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(active) = keys.iter_mut().find(|active| active.key.id == key.id) {
            let removal = active.removal.clone();
            *active = ActiveKey { removal, ..ActiveKey::new(key) };
        }
    }

    /// Removes a key; its streams and runs end.
    pub(crate) fn remove(&self, id: &str) {
        self.keys.write().unwrap_or_else(PoisonError::into_inner).retain(|active| {
            if active.key.id == id {
                active.removal.cancel();
            }
            active.key.id != id
        });
    }

    /// Replaces the stored keys with those that another server has changed. The streams and runs of removed
    /// keys end.
    pub(crate) fn replace(&self, rows: Vec<KeyRow>) {
        let mut keys = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        let is_configured = |active: &ActiveKey| active.key.id == CONFIGURED_KEY;
        for active in keys.iter().filter(|active| !is_configured(active)) {
            if !rows.iter().any(|row| row.id == active.key.id) {
                active.removal.cancel();
            }
        }
        let (configured, stored): (Vec<_>, Vec<_>) =
            std::mem::take(&mut *keys).into_iter().partition(is_configured);
        let new_keys = rows.into_iter().map(|row| {
            let same_key = stored.iter().find(|active| active.key.id == row.id);
            let removal = same_key.map(|active| active.removal.clone());
            let active = ActiveKey::new(row);
            ActiveKey { removal: removal.unwrap_or_default(), ..active }
        });
        *keys = new_keys.chain(configured).collect();
    }

    /// Returns the caller with the key of that id, if the key exists.
    pub(crate) fn caller_of_key(&self, id: &str) -> Option<Caller> {
        self.read_keys().iter().find(|active| active.key.id == id).map(ActiveKey::caller)
    }

    /// Returns the caller of an owner who has exactly one key.
    pub(crate) fn caller_of_owner(&self, owner: &str) -> Option<Caller> {
        let keys = self.read_keys();
        let mut owner_keys = keys.iter().filter(|active| active.key.owner == owner);
        owner_keys.next().filter(|_| owner_keys.next().is_none()).map(ActiveKey::caller)
    }

    /// Creates a short-lived token that allows its bearer to read the events of a message.
    pub(crate) fn create_token(&self, caller: &Caller, message: &str) -> String {
        let secret = ids::new_secret();
        let mut tokens = self.lock_tokens();
        let now = Instant::now();
        tokens.retain(|_, token| token.expires_at > now && !token.caller.removal.is_cancelled());
        let caller = Caller { memory: MemoryHold::default(), ..caller.clone() };
        let token = StreamToken { message: message.to_owned(), caller, expires_at: now + TOKEN_LIFETIME };
        tokens.insert(hash(&secret), token);
        secret
    }

    /// Returns the caller that created a token, if the token is valid for that message and the key still
    /// exists.
    pub(crate) fn find_by_token(&self, token_text: &str, message: &str) -> Option<Caller> {
        let tokens = self.lock_tokens();
        let token = tokens.get(&hash(token_text))?;
        let is_valid = token.message == message && token.expires_at > Instant::now();
        (is_valid && self.is_admitted(&token.caller)).then(|| token.caller.clone())
    }
}

impl ActiveKey {
    /// Makes the caller of a request with this key.
    fn caller(&self) -> Caller {
        let ActiveKey { key, limits, removal } = self;
        Caller {
            owner: key.owner.clone(),
            key: key.id.clone(),
            is_admin: key.is_admin,
            limits: limits.clone(),
            removal: removal.clone(),
            connection: None,
            span: ParentSpan::default(),
            memory: MemoryHold::default(),
        }
    }

    fn new(key: KeyRow) -> ActiveKey {
        let limits = key.limits.as_deref().map(|limits| {
            serde_json::from_str(limits).unwrap_or_else(|error| {
                tracing::error!(%error, key = key.id, "limits of a key cannot be read; it may use no model");
                KeyLimits { aliases: Some(Vec::new()), ..KeyLimits::default() }
            })
        });
        ActiveKey { key, limits: Arc::new(limits.unwrap_or_default()), removal: CancellationToken::new() }
    }
}

/// Returns the SHA-256 hash of a secret text.
pub(crate) fn hash(secret: &str) -> Vec<u8> {
    Sha256::digest(secret.as_bytes()).to_vec()
}
