//! Checks of the tables about programs: their limits, and the services that they may attach to.

use nix::unistd::{Gid, Group, User};
use rampmeter_ring::{AllowedUsers, Limits, Services};

use super::super::tables::{AccountName, ProgramsTable, ServiceTable};
use super::Check;
use crate::error::InputError;

impl Check<'_> {
    /// Checks the limits of programs.
    pub(super) fn limits(&self, programs: &ProgramsTable) -> Result<Limits, Box<InputError>> {
        let usual = Limits::default();
        let count = |key: &str, value: Option<usize>, usual| match value {
            Some(0) => Err(self.bad(&format!("programs.{key}"), "1 or more", 0)),
            value => Ok(value.unwrap_or(usual)),
        };
        let bytes = |key: &str, value: Option<u64>, usual: u64| match value {
            Some(0) => Err(self.bad(&format!("programs.{key}"), "1 or more", 0)),
            value => Ok(value.map_or(usual, |mb| mb.saturating_mul(1_000_000))),
        };
        Ok(Limits {
            clients_max: count("attached-max", programs.attached_max, usual.clients_max)?,
            clients_per_user: count(
                "attached-max-per-user",
                programs.attached_max_per_user,
                usual.clients_per_user,
            )?,
            memory_max: bytes("memory-max-mb", programs.memory_max_mb, usual.memory_max)?,
            memory_per_user: bytes(
                "memory-max-per-user-mb",
                programs.memory_max_per_user_mb,
                usual.memory_per_user,
            )?,
            ..usual
        })
    }

    /// Checks the services, and the users and groups that may attach to them.
    pub(super) fn services(&self, tables: &[ServiceTable]) -> Result<Services, Box<InputError>> {
        let mut services = Services::default();
        for (idx, table) in tables.iter().enumerate() {
            let key = |name: &str| format!("service[{idx}].{name}");
            let mut allowed = AllowedUsers::default();
            for user in &table.users {
                let uid = match user {
                    AccountName::Number(uid) => *uid,
                    AccountName::Text(name) => match User::from_name(name) {
                        Ok(Some(user)) => user.uid.as_raw(),
                        _ => return Err(self.bad(&key("users"), "users of this machine", name)),
                    },
                };
                allowed.users.insert(uid);
            }
            for group in &table.groups {
                let found = match group {
                    AccountName::Number(gid) => Group::from_gid(Gid::from_raw(*gid)),
                    AccountName::Text(name) => Group::from_name(name),
                };
                match (found, group) {
                    (Ok(Some(group)), _) => {
                        allowed.groups.insert(group.gid.as_raw());
                        // Programs connect with their primary group; members may have this as a
                        // supplementary one.
                        let members = group.mem.iter().filter_map(|m| User::from_name(m).ok()?);
                        allowed.users.extend(members.map(|user| user.uid.as_raw()));
                    }
                    (_, AccountName::Number(gid)) => drop(allowed.groups.insert(*gid)),
                    (_, AccountName::Text(name)) => {
                        return Err(self.bad(&key("groups"), "groups of this machine", name));
                    }
                }
            }
            if services.0.insert(table.id, allowed).is_some() {
                return Err(self.bad(&key("id"), "a service that no other table has", table.id));
            }
        }
        Ok(services)
    }

    /// Refuses tables about programs at nodes that have none.
    pub(super) fn without_socket(
        &self,
        has_programs: bool,
        programs: &ProgramsTable,
        services: &[ServiceTable],
    ) -> Result<(), Box<InputError>> {
        let key = match (programs == &ProgramsTable::default(), services) {
            _ if has_programs => return Ok(()),
            (true, []) => return Ok(()),
            (false, _) => "programs",
            (true, _) => "service",
        };
        Err(self.bad(key, "none at an arbiter, or without node.socket", "one"))
    }
}
