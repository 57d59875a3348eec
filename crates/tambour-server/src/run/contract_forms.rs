//! Cache of written contracts: instructions, schemas and grammars for constrained decoding, by their content.

use std::sync::Arc;

use quick_cache::sync::Cache;
use quick_cache::{OptionsBuilder, Weighter};
use serde_json::Value;
use sha2::{Digest, Sha256};
use tambour::Options;
use tambour::dialect::DialectEntry;

use crate::base::cpu_pool::CpuPool;
use crate::base::fail;
use crate::base::problem::Problem;
use crate::upstream::ConstraintForms;

/// Maximum size of the cached contracts in bytes; one that is larger is not kept.
const CACHE_BYTES: u64 = 32 << 20;

/// Cache of written contracts, by the SHA-256 of all that shapes them.
pub(crate) struct ContractFormCache<T>(Cache<[u8; 32], CachedForm<T>, FormWeighter>);

/// Written contract in the cache, and its size in bytes.
type CachedForm<T> = (Arc<T>, u64);

/// Weighs a written contract by its bytes.
#[derive(Clone)]
struct FormWeighter;

impl<T> Weighter<[u8; 32], CachedForm<T>> for FormWeighter {
    fn weight(&self, _: &[u8; 32], (_, bytes): &CachedForm<T>) -> u64 {
        // An empty one has a weight too, so that the number of entries is bounded.
        (*bytes).max(64)
    }
}

impl<T: Send + Sync + 'static> ContractFormCache<T> {
    pub(crate) fn new() -> ContractFormCache<T> {
        // With more shards, each would be too small for the largest contract.
        let options = OptionsBuilder::new()
            .estimated_items_capacity(1000)
            .weight_capacity(CACHE_BYTES)
            .shards(1)
            .build();
        let build =
            |options| Cache::with_options(options, FormWeighter, Default::default(), Default::default());
        // The options are complete, so the fallback is never used.
        ContractFormCache(
            options.map_or_else(|_| Cache::with_weighter(1000, CACHE_BYTES, FormWeighter), build),
        )
    }

    /// Returns the contract that `content` describes completely. One that is not cached is written on the CPU
    /// pool, for this owner and once for all that wait for it; `write` also returns its size in bytes. A
    /// failure is not cached.
    ///
    /// # Errors
    /// The contract cannot be written, or the owner's queue in the pool is full.
    pub(crate) async fn get(
        &self,
        (cpu_pool, owner): (&CpuPool, &str),
        content: &Value,
        write: impl FnOnce() -> Result<(T, usize), Problem> + Send + 'static,
    ) -> Result<Arc<T>, Problem> {
        let key: [u8; 32] = Sha256::digest(content.to_string()).into();
        let write_form = async {
            let write_result = cpu_pool.run(owner, move || {
                fail::point("contract");
                write()
            });
            let (form, bytes) = write_result.await??;
            let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
            Ok::<CachedForm<T>, Problem>((Arc::new(form), bytes))
        };
        let (form, _) = self.0.get_or_insert_async(&key, write_form).await?;
        Ok(form)
    }
}

/// Forms of a contract to send along, or the reason why it has none.
pub(crate) type WrittenForms = Result<Arc<ConstraintForms>, String>;

impl ContractFormCache<WrittenForms> {
    /// Returns the forms of the dialect's contract under these options, which `content` describes completely. A
    /// contract that has no forms is cached, too: to find out takes as long as to write them.
    ///
    /// # Errors
    /// The owner's queue in the pool is full.
    pub(crate) async fn forms(
        &self,
        pool: (&CpuPool, &str),
        content: &Value,
        entry: &'static DialectEntry,
        options: Options,
    ) -> Result<WrittenForms, Problem> {
        let write = move || {
            let forms = ConstraintForms::of_contract(entry, &options);
            let forms =
                forms.map(|forms| Arc::new(forms.unwrap_or_default())).map_err(|error| error.to_string());
            let size = forms.as_ref().map_or_else(String::len, |forms| forms.size());
            Ok((forms, size))
        };
        let forms = self.get(pool, content, write).await?;
        Ok((*forms).clone())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::future::join_all;
    use serde_json::json;

    use super::{CACHE_BYTES, ContractFormCache, CpuPool, Problem};

    #[tokio::test]
    async fn contracts_are_cached_by_content_and_bounded() {
        let (cache, cpu_pool) = (ContractFormCache::<String>::new(), CpuPool::new());
        let write = |text: &str, bytes: usize| {
            let text = text.to_owned();
            move || Ok((text, bytes))
        };
        let first = cache.get((&cpu_pool, "a"), &json!(["x"]), write("one", 3)).await.unwrap();
        let second = cache.get((&cpu_pool, "b"), &json!(["x"]), write("two", 3)).await.unwrap();
        assert!(Arc::ptr_eq(&first, &second), "{second}");
        let other = cache.get((&cpu_pool, "a"), &json!(["y"]), write("two", 3)).await.unwrap();
        assert_eq!(*other, "two");
        // Many who want the same one at a time wait for the first.
        let count = Arc::new(AtomicUsize::new(0));
        let waiting = (0..20).map(|_| {
            let (count, content) = (count.clone(), json!(["shared"]));
            let (cache, cpu_pool) = (&cache, &cpu_pool);
            async move {
                let write = move || {
                    count.fetch_add(1, Ordering::Relaxed);
                    Ok(("shared".to_owned(), 6))
                };
                cache.get((cpu_pool, "a"), &content, write).await.unwrap()
            }
        });
        join_all(waiting).await;
        assert_eq!(count.load(Ordering::Relaxed), 1);
        let refuse = || Err(Problem::invalid("invalid_field", "no"));
        assert!(cache.get((&cpu_pool, "a"), &json!(["z"]), refuse).await.is_err());
        assert_eq!(*cache.get((&cpu_pool, "a"), &json!(["z"]), write("three", 5)).await.unwrap(), "three");
        // Many large ones evict each other.
        for number in 0..40 {
            cache.get((&cpu_pool, "a"), &json!([number]), write("large", 3 << 20)).await.unwrap();
            assert!(cache.0.weight() <= CACHE_BYTES);
        }
    }
}
