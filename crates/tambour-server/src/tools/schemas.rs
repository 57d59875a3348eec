//! Cache of compiled JSON Schemas of tools and states. They are compiled within limits on the CPU pool.

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

/// Maximum memory of the cached schemas, estimated in bytes.
const CACHE_BYTES: u64 = 64 << 20;
/// Estimated bytes of a compiled schema for each byte of its text, without its patterns.
const COMPILED_BYTES_PER_BYTE: usize = 16;

/// Cache of compiled schemas, by the SHA-256 of the limits and the text.
pub(crate) struct SchemaCache(Cache<[u8; 32], CachedSchema, SchemaWeighter>);

/// Compiled schema in the cache.
#[derive(Clone)]
struct CachedSchema {
    schema: Arc<Schema>,
    /// Estimated bytes of memory.
    bytes: u64,
}

/// Weighs a cached schema by its bytes.
#[derive(Clone)]
struct SchemaWeighter;

impl Weighter<[u8; 32], CachedSchema> for SchemaWeighter {
    fn weight(&self, _: &[u8; 32], entry: &CachedSchema) -> u64 {
        entry.bytes
    }
}

impl SchemaCache {
    pub(crate) fn new() -> SchemaCache {
        // With more shards, each would be too small for the largest schema.
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

    /// Returns a compiled schema. A schema that is not cached is compiled on the CPU pool, for this owner; a
    /// failure is not cached.
    ///
    /// # Errors
    /// The schema is invalid or exceeds a limit, or the owner's queue in the pool is full.
    pub(crate) async fn get(
        &self,
        (cpu_pool, owner): (&CpuPool, &str),
        schema: &Value,
        limits: &ToolLimits,
    ) -> Result<Arc<Schema>, Problem> {
        let limits = SchemaLimits::new(limits.max_patterns, limits.max_pattern_bytes);
        let text = schema.to_string();
        if text.len() > MAX_DEFINITION_BYTES {
            let detail =
                format!("a schema may have at most {MAX_DEFINITION_BYTES} bytes, not {}", text.len());
            return Err(Problem::invalid("schema_limit", detail).with("field", "schema"));
        }
        // Schemas that differ in the order of fields are different: the model sees the order.
        let mut hash = Sha256::new();
        hash.update(limits.patterns.to_le_bytes());
        hash.update(limits.pattern_bytes.to_le_bytes());
        hash.update(&text);
        let compile = async {
            let schema = schema.clone();
            let compile_result = cpu_pool.run(owner, move || {
                fail::point("schema");
                Schema::with_limits(schema, &limits)
            });
            let schema = compile_result.await?.map_err(|rejection| schema_problem(&rejection))?;
            let bytes = text.len() * COMPILED_BYTES_PER_BYTE + schema.count_patterns() * limits.pattern_bytes;
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

/// Returns the problem of a request with an invalid schema.
fn schema_problem(rejection: &SchemaRejection) -> Problem {
    Problem::invalid(rejection.code, rejection.message.as_str())
        .with("field", "schema")
        .with("pointer", rejection.pointer.as_str())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::{CpuPool, SchemaCache, ToolLimits};

    #[tokio::test]
    async fn compiled_schemas_are_cached_and_failures_are_not() {
        let (schemas, cpu_pool, limits) = (SchemaCache::new(), CpuPool::new(), ToolLimits::default());
        let schema = json!({"properties": {"a": {"pattern": "^a+b$"}}});
        let first = schemas.get((&cpu_pool, "a"), &schema, &limits).await.unwrap();
        assert!(Arc::ptr_eq(&first, &schemas.get((&cpu_pool, "a"), &schema, &limits).await.unwrap()));
        let strict = ToolLimits { max_patterns: 0, ..limits.clone() };
        assert!(schemas.get((&cpu_pool, "a"), &schema, &strict).await.is_err());
        // Many large schemas evict each other.
        for number in 0..20 {
            let fields: serde_json::Map<_, _> =
                (0..64).map(|n| (n.to_string(), json!({"pattern": format!("^a+{number}$")}))).collect();
            let large = json!({ "properties": fields });
            schemas.get((&cpu_pool, "a"), &large, &limits).await.unwrap();
            assert!((1..=super::CACHE_BYTES).contains(&schemas.0.weight()));
        }
    }
}
