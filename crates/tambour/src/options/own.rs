//! Storage for options of dialects. Each is a type of its own that only its folder knows.

use std::any::Any;
use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

/// Options of one dialect.
pub trait Section: Any + Clone + Debug + Default + PartialEq + Send + Sync {}

impl<T: Any + Clone + Debug + Default + PartialEq + Send + Sync> Section for T {}

/// Options that differ from their defaults, at most one value per type.
#[derive(Clone, Default)]
pub(crate) struct Own(Vec<Arc<dyn Held>>);

trait Held: Any + Debug + Send + Sync {}

impl<T: Section> Held for T {}

impl Own {
    pub(super) fn get<T: Section>(&self) -> Option<&T> {
        self.0.iter().find_map(|held| {
            let held: &dyn Any = &**held;
            held.downcast_ref::<T>()
        })
    }

    pub(super) fn put<T: Section>(&mut self, section: T) {
        self.0.retain(|held| {
            let held: &dyn Any = &**held;
            !held.is::<T>()
        });
        if section != T::default() {
            self.0.push(Arc::new(section));
        }
    }
}

impl Debug for Own {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.0).finish()
    }
}
