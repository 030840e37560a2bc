//! Names of hosts in results.

use std::path::Path;

use rampmeter_exp::{NullObserver, Plan, Registry, run};
use rampmeter_metrics::columns::read_rows;
use rampmeter_metrics::series::HostRow;

/// Returns the names of hosts in the results of a star of hosts.
fn names(hosts: &str) -> Option<Vec<String>> {
    let text = format!(
        "transport = {{ name = 'homa' }}\n[topology]\nkind = 'links'\nhosts = {hosts}\n\
         switches = 1\nlinks = [{{ between = ['h0', 's0'] }}, {{ between = ['h1', 's0'] }}]\n\
         [workload]\npattern = 'all-to-all'\nsizes = 'imc10'\nload = 0.1\nflows = 4"
    );
    let text = match hosts.starts_with('[') {
        true => text.replace("'h0'", "'gpu a'").replace("'h1'", "'gpu b'"),
        false => text,
    };
    let plan = Plan::from_toml(&text, "plan", &Registry::builtin()).unwrap();
    let plan = plan.check("plan", Path::new(".")).unwrap();
    let out = tempfile::tempdir().unwrap();
    run(&plan, out.path(), &mut NullObserver).unwrap();
    let file = out.path().join("hosts.parquet");
    let rows = file.exists().then(|| read_rows::<HostRow>(&file).unwrap().0)?;
    assert_eq!(rows.host, (0..rows.host.len() as u32).collect::<Vec<_>>());
    Some(rows.name.iter().map(ToString::to_string).collect())
}

#[test]
fn names_of_hosts_are_a_table_by_number() {
    assert_eq!(names("['gpu a', 'gpu b']").unwrap(), ["gpu a", "gpu b"]);
    assert_eq!(names("2"), None);
}
