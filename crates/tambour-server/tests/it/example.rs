//! Example programs work as their READMEs say.

use std::path::{Path, PathBuf};
use std::process::Command;

use tambour_server::Config;

use crate::server::{Folder, Tambour, config};

#[tokio::test]
async fn the_requirements_assistant() {
    let root: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let example = root.join("examples/srs-assistant");
    let given = Config::load(Some(&example.join("tambour.toml")), std::iter::empty()).unwrap();
    let folder = Folder::new();
    let mut config = config(&folder);
    config.tools = given.tools;
    config.upstreams = given.upstreams;
    config.default_upstream = given.default_upstream;
    let replies = &mut config.upstreams.get_mut("recorded").unwrap().url;
    *replies = root.join(&*replies).display().to_string();
    let server = Tambour::serve(folder, config).await;
    let url = format!("http://{}", server.address);
    // Twice, since recordings start over.
    for _ in 0..2 {
        let mut assistant = Command::new("node");
        assistant.arg(example.join("assistant.mjs")).args(["--yes", "--server", &url]);
        let run = move || assistant.output().expect("`node` is there; CONTRIBUTING.md says what tests need");
        let output = tokio::task::spawn_blocking(run).await.unwrap();
        let (said, wrong) =
            (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        assert!(output.status.success(), "{said}\n{wrong}");
        for line in [
            "> classifyProjectComplexity {\"complexity\":\"complex\",\"features\":4}\n",
            "> lintSRSDocument {\"document\":\"E-commerce Platform\",\"findings\":[\"没有非功能需求\"]}\n",
            "\"NFR-1 95% 的页面在 2 秒内打开\"]}\n· ",
            "\n\nE-commerce Platform 的SRS文档已创建",
            "(stop)\n",
        ] {
            assert!(said.contains(line), "{line} is missing:\n{said}\n{wrong}");
        }
    }
}
