//! Example programs work as their READMEs say.

use std::path::{Path, PathBuf};
use std::process::Command;

use tambour_server::Config;

use crate::server::{Folder, TestServer, test_config};

#[tokio::test]
async fn the_requirements_assistant() {
    let root: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let example = root.join("examples/srs-assistant");
    let example_config = Config::load(Some(&example.join("tambour.toml")), std::iter::empty()).unwrap();
    let folder = Folder::new();
    let mut config = test_config(&folder);
    config.tools = example_config.tools;
    config.upstreams = example_config.upstreams;
    config.default_upstream = example_config.default_upstream;
    let replies = &mut config.upstreams.get_mut("recorded").unwrap().url;
    *replies = root.join(&*replies).display().to_string();
    let server = TestServer::serve(folder, config).await;
    let url = format!("http://{}", server.address);
    // Twice, since recordings start over.
    for _ in 0..2 {
        let mut assistant = Command::new("node");
        assistant.arg(example.join("assistant.mjs")).args(["--yes", "--server", &url]);
        let run = move || assistant.output().expect("`node` is there; CONTRIBUTING.md says what tests need");
        let output = tokio::task::spawn_blocking(run).await.unwrap();
        let (stdout, stderr) =
            (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        assert!(output.status.success(), "{stdout}\n{stderr}");
        for line in [
            "> classifyProjectComplexity {\"complexity\":\"complex\",\"features\":4}\n",
            "> lintSRSDocument {\"document\":\"E-commerce Platform\",\"findings\":[\"没有非功能需求\"]}\n",
            "\"NFR-1 95% 的页面在 2 秒内打开\"]}\n· ",
            "\n\nE-commerce Platform 的SRS文档已创建",
            "(stop)\n",
        ] {
            assert!(stdout.contains(line), "{line} is missing:\n{stdout}\n{stderr}");
        }
    }
}
