//! Users of the machine: resource limits and access to services.
//!
//! The system reports the owner of a connection (`SO_PEERCRED`): the user and the group that the
//! program had when it connected.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::net::UCred;

/// Resource limits of each application, of one user's applications, and of all together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of attached applications.
    pub clients_max: usize,
    /// Maximum number of attached applications of one user.
    pub clients_per_user: usize,
    /// Maximum bytes of both arenas of one application together.
    pub arena_max: u64,
    /// Maximum bytes that all applications share with the node.
    pub memory_max: u64,
    /// Maximum bytes that the applications of one user share with the node.
    pub memory_per_user: u64,
}

impl Default for Limits {
    /// 256 applications, 64 of each user. Up to 4 GiB each, half of the machine's memory together,
    /// and a quarter of it for each user.
    fn default() -> Self {
        let info = rustix::system::sysinfo();
        let memory = info.totalram * u64::from(info.mem_unit.max(1));
        Self {
            clients_max: 256,
            clients_per_user: 64,
            arena_max: 4 << 30,
            memory_max: memory / 2,
            memory_per_user: memory / 4,
        }
    }
}

/// Users and groups that may attach to a service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowedUsers {
    /// Users, by number.
    pub users: BTreeSet<u32>,
    /// Groups, by number: those that programs have when they connect.
    pub groups: BTreeSet<u32>,
}

/// Services with restricted access, and the users and groups that have it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Services(pub BTreeMap<u16, AllowedUsers>);

/// Limits and services in force, which may change while applications are attached.
///
/// A request that arrives after [`Access::set`] has returned is checked against the new rules.
/// Attached applications that are no longer allowed are disconnected.
#[derive(Clone, Debug, Default)]
pub struct Access(Arc<AccessRules>);

#[derive(Debug, Default)]
struct AccessRules {
    rules: Mutex<(Limits, Services)>,
    /// Written to when the rules change, once the acceptor is open.
    changed: Mutex<Option<Arc<OwnedFd>>>,
}

impl Access {
    /// Replaces the limits and services.
    pub fn set(&self, limits: Limits, services: Services) {
        *self.rules() = (limits, services);
        let changed = self.0.changed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(changed) = &*changed {
            let _ = rustix::io::write(changed, &1u64.to_ne_bytes());
        }
    }

    /// Returns the rules in force.
    pub(crate) fn rules(&self) -> MutexGuard<'_, (Limits, Services)> {
        self.0.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes to `changed` from now on when the rules change.
    pub(crate) fn notify(&self, changed: Arc<OwnedFd>) {
        *self.0.changed.lock().unwrap_or_else(PoisonError::into_inner) = Some(changed);
    }
}

/// User and group of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

impl From<UCred> for User {
    fn from(credentials: UCred) -> Self {
        Self { uid: credentials.uid.as_raw(), gid: credentials.gid.as_raw() }
    }
}

impl Services {
    /// Returns true if programs of `user` may attach to `service`.
    pub(crate) fn allow(&self, service: u16, user: User) -> bool {
        let is_of = |allowed: &AllowedUsers| {
            allowed.users.contains(&user.uid) || allowed.groups.contains(&user.gid)
        };
        self.0.get(&service).is_none_or(is_of)
    }
}
