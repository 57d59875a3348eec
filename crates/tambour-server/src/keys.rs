//! API keys, callers and owners (invariant 10). A key belongs to an owner, as does everything created with
//! it; both outlive the key.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use tokio_util::sync::CancellationToken;

use crate::connection::Connection;
use crate::ids;
use crate::memory::Hold;
use crate::quotas::{self, Limits};
use crate::store::Key;
use crate::telemetry::Parent;

/// Registry of API keys. Holds hashes only, never secrets.
pub(crate) struct Keys {
    known: RwLock<Vec<Known>>,
    /// Tokens for event streams, by hash.
    tokens: Mutex<HashMap<Vec<u8>, Token>>,
    /// Serializes changes of keys, so that the check before a change still holds when it is made.
    pub(crate) changing: tokio::sync::Mutex<()>,
}

/// Key with its limits and the token that is cancelled on removal.
struct Known {
    key: Key,
    limits: Arc<Limits>,
    removed: CancellationToken,
}

/// Permission to read one event stream.
struct Token {
    message: String,
    caller: Caller,
    until: Instant,
}

/// Owner and key id while no key exists.
pub(crate) const LOCAL: &str = "local";
/// Id and owner of the configured key.
pub(crate) const CONFIGURED: &str = "configured";
/// Lifetime of a token.
pub(crate) const TOKEN: Duration = Duration::from_secs(300);

/// Authenticated client of a request.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    /// Owner of everything this caller creates.
    pub(crate) owner: String,
    /// Id of the key; `local` while no key exists.
    pub(crate) key: String,
    /// Right to change settings and keys.
    pub(crate) admin: bool,
    /// Limits of the key.
    pub(crate) limits: Arc<Limits>,
    /// Cancelled when the key is removed.
    pub(crate) removed: CancellationToken,
    /// Connection of the request.
    pub(crate) connection: Option<Arc<Connection>>,
    /// Parent span of the request.
    pub(crate) span: Parent,
    /// Memory reserved for the request.
    pub(crate) hold: Hold,
}

impl Keys {
    /// Combines the stored keys with the configured one.
    #[must_use]
    pub(crate) fn new(mut stored: Vec<Key>, configured: Option<&str>) -> Keys {
        stored.extend(configured.map(|secret| Key {
            id: CONFIGURED.into(),
            owner: CONFIGURED.into(),
            name: CONFIGURED.into(),
            hash: hash(secret),
            admin: true,
            created: ids::now(),
            limits: None,
        }));
        let known = stored.into_iter().map(Known::new).collect();
        Keys { known: RwLock::new(known), tokens: Mutex::default(), changing: tokio::sync::Mutex::default() }
    }

    fn known(&self) -> RwLockReadGuard<'_, Vec<Known>> {
        self.known.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn tokens(&self) -> MutexGuard<'_, HashMap<Vec<u8>, Token>> {
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns `true` if there is no key.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.known().is_empty()
    }

    /// Checks that an admitted caller would still be admitted.
    pub(crate) fn knows(&self, caller: &Caller) -> bool {
        let known = self.known();
        if known.is_empty() {
            caller.key == LOCAL
        } else {
            known.iter().any(|known| known.key.id == caller.key)
        }
    }

    /// Checks that a caller may still change keys.
    pub(crate) fn may_change(&self, caller: &Caller) -> bool {
        let known = self.known();
        if known.is_empty() {
            caller.key == LOCAL
        } else {
            known.iter().any(|known| known.key.id == caller.key && known.key.admin)
        }
    }

    /// Returns the caller of a secret. Compares it with every key, each in constant time.
    pub(crate) fn caller(&self, secret: Option<&str>) -> Option<Caller> {
        let known = self.known();
        if known.is_empty() {
            let (owner, key) = (LOCAL.to_owned(), LOCAL.to_owned());
            return Some(Caller {
                owner,
                key,
                admin: true,
                limits: quotas::none(),
                removed: CancellationToken::new(),
                connection: None,
                span: Parent::default(),
                hold: Hold::default(),
            });
        }
        let hash = hash(secret?);
        let mut found = None;
        for Known { key, limits, removed } in known.iter() {
            if bool::from(key.hash.as_slice().ct_eq(hash.as_slice())) {
                found = Some(Caller {
                    owner: key.owner.clone(),
                    key: key.id.clone(),
                    admin: key.admin,
                    limits: limits.clone(),
                    removed: removed.clone(),
                    connection: None,
                    span: Parent::default(),
                    hold: Hold::default(),
                });
            }
        }
        found
    }

    /// Returns the name of a key, or its id if it is not known.
    pub(crate) fn name(&self, id: &str) -> String {
        let known = self.known();
        known
            .iter()
            .find(|known| known.key.id == id)
            .map_or_else(|| id.to_owned(), |known| known.key.name.clone())
    }

    /// Adds a key.
    pub(crate) fn add(&self, key: Key) {
        self.known.write().unwrap_or_else(PoisonError::into_inner).push(Known::new(key));
    }

    /// Replaces a key for new requests.
    pub(crate) fn change(&self, key: Key) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.iter_mut().find(|known| known.key.id == key.id) {
            let removed = known.removed.clone();
            *known = Known { removed, ..Known::new(key) };
        }
    }

    /// Removes a key; its streams and runs end.
    pub(crate) fn remove(&self, id: &str) {
        self.known.write().unwrap_or_else(PoisonError::into_inner).retain(|known| {
            if known.key.id == id {
                known.removed.cancel();
            }
            known.key.id != id
        });
    }

    /// Creates a short-lived token that allows its bearer to read the events of a message.
    pub(crate) fn token(&self, caller: &Caller, message: &str) -> String {
        let secret = ids::secret();
        let mut tokens = self.tokens();
        let now = Instant::now();
        tokens.retain(|_, token| token.until > now && !token.caller.removed.is_cancelled());
        let caller = Caller { hold: Hold::default(), ..caller.clone() };
        let token = Token { message: message.to_owned(), caller, until: now + TOKEN };
        tokens.insert(hash(&secret), token);
        secret
    }

    /// Returns the caller that created a token, if it is valid for that message.
    pub(crate) fn by_token(&self, token: &str, message: &str) -> Option<Caller> {
        let tokens = self.tokens();
        let token = tokens.get(&hash(token))?;
        let holds = token.message == message && token.until > Instant::now();
        (holds && self.knows(&token.caller)).then(|| token.caller.clone())
    }
}

impl Known {
    fn new(key: Key) -> Known {
        let limits = key.limits.as_deref().map(|limits| {
            serde_json::from_str(limits).unwrap_or_else(|error| {
                tracing::error!(%error, key = key.id, "what a key may do cannot be read; it may ask nobody");
                Limits { aliases: Some(Vec::new()), ..Limits::default() }
            })
        });
        Known { key, limits: Arc::new(limits.unwrap_or_default()), removed: CancellationToken::new() }
    }
}

/// Returns the SHA-256 hash of a secret.
pub(crate) fn hash(secret: &str) -> Vec<u8> {
    Sha256::digest(secret.as_bytes()).to_vec()
}
