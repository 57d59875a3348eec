//! Cache of tool schemas, compiled within limits on the CPU pool.

use std::sync::Arc;

use quick_cache::sync::Cache;
use quick_cache::{OptionsBuilder, Weighter};
use serde_json::Value;
use sha2::{Digest, Sha256};
use tambour::schema::{Schema, SchemaLimits, SchemaRejection};

use super::{MAX_DEFINITION_BYTES, ToolLimits};
use crate::base::cpu_pool::CpuPool;
use crate::base::fail;
use crate::base::problem::Problem;

/// Approximate bytes of the cache.
const CACHE_BYTES: u64 = 64 << 20;
/// Approximate bytes of a compiled schema per byte of its text.
const COMPILED_FACTOR: usize = 16;

/// Cache of compiled schemas.
pub(crate) struct SchemaCache(Cache<[u8; 32], CachedSchema, SchemaWeighter>);

#[derive(Clone)]
struct CachedSchema {
    schema: Arc<Schema>,
    bytes: u64,
}

#[derive(Clone)]
struct SchemaWeighter;

impl Weighter<[u8; 32], CachedSchema> for SchemaWeighter {
    fn weight(&self, _: &[u8; 32], entry: &CachedSchema) -> u64 {
        entry.bytes
    }
}

impl SchemaCache {
    pub(crate) fn new() -> SchemaCache {
        // One shard, so that the largest schema fits.
        let options = OptionsBuilder::new()
            .estimated_items_capacity(1000)
            .weight_capacity(CACHE_BYTES)
            .shards(1)
            .build();
        let build =
            |options| Cache::with_options(options, SchemaWeighter, Default::default(), Default::default());
        // The options are complete, so the fallback is never used.
        SchemaCache(options.map_or_else(|_| Cache::with_weighter(1000, CACHE_BYTES, SchemaWeighter), build))
    }

    /// Returns the compiled schema.
    ///
    /// # Errors
    /// The schema is invalid, or exceeds a limit.
    pub(crate) async fn get(
        &self,
        (aside, owner): (&CpuPool, &str),
        schema: &Value,
        limits: &ToolLimits,
    ) -> Result<Arc<Schema>, Problem> {
        let limits = SchemaLimits::new(limits.max_patterns, limits.max_pattern_bytes);
        let text = schema.to_string();
        if text.len() > MAX_DEFINITION_BYTES {
            let detail = format!("a schema takes at most {MAX_DEFINITION_BYTES} bytes, not {}", text.len());
            return Err(Problem::invalid("schema_limit", detail).with("field", "schema"));
        }
        // The order of fields matters, since the model is shown it.
        let mut hash = Sha256::new();
        hash.update(limits.patterns.to_le_bytes());
        hash.update(limits.pattern_bytes.to_le_bytes());
        hash.update(&text);
        let compile = async {
            let schema = schema.clone();
            let compile_result = aside.run(owner, move || {
                fail::point("schema");
                Schema::with_limits(schema, &limits)
            });
            let schema = compile_result.await?.map_err(|unfit| schema_problem(&unfit))?;
            let bytes = text.len() * COMPILED_FACTOR + schema.count_patterns() * limits.pattern_bytes;
            Ok::<CachedSchema, Problem>(CachedSchema {
                schema: Arc::new(schema),
                bytes: u64::try_from(bytes).unwrap_or(u64::MAX),
            })
        };
        let hash: [u8; 32] = hash.finalize().into();
        let entry = self.0.get_or_insert_async(&hash, compile).await?;
        Ok(entry.schema)
    }
}

fn schema_problem(unfit: &SchemaRejection) -> Problem {
    Problem::invalid(unfit.code, unfit.message.as_str())
        .with("field", "schema")
        .with("pointer", unfit.pointer.as_str())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::{CpuPool, SchemaCache, ToolLimits};

    #[tokio::test]
    async fn what_was_compiled_is_kept_and_failures_are_not() {
        let (schemas, aside, limits) = (SchemaCache::new(), CpuPool::new(), ToolLimits::default());
        let schema = json!({"properties": {"a": {"pattern": "^a+b$"}}});
        let first = schemas.get((&aside, "a"), &schema, &limits).await.unwrap();
        assert!(Arc::ptr_eq(&first, &schemas.get((&aside, "a"), &schema, &limits).await.unwrap()));
        let strict = ToolLimits { max_patterns: 0, ..limits.clone() };
        assert!(schemas.get((&aside, "a"), &schema, &strict).await.is_err());
        // Many large schemas evict each other.
        for at in 0..20 {
            let fields: serde_json::Map<_, _> =
                (0..64).map(|n| (n.to_string(), json!({"pattern": format!("^a+{at}$")}))).collect();
            let large = json!({ "properties": fields });
            schemas.get((&aside, "a"), &large, &limits).await.unwrap();
            assert!((1..=super::CACHE_BYTES).contains(&schemas.0.weight()));
        }
    }
}
