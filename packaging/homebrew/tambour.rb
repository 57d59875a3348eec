# `cargo xtask dist` fills in the version, the address and the checksum.
class Tambour < Formula
  desc "Structured replies of language models as one typed, repaired, checked stream"
  homepage "https://tambour.example/"
  version "0.1.0"
  url "https://tambour.example/releases/tambour-0.1.0-x86_64-unknown-linux-gnu.tar.gz"
  sha256 "0000000000000000000000000000000000000000000000000000000000000000"
  license any_of: ["Apache-2.0", "MIT"]

  def install
    bin.install "tambour"
    man1.install Dir["man/man1/*.1"]
    bash_completion.install "completions/tambour.bash" => "tambour"
    zsh_completion.install "completions/_tambour"
    fish_completion.install "completions/tambour.fish"
  end

  service do
    run [opt_bin/"tambour", "serve", "--data", var/"tambour"]
    keep_alive successful_exit: false
    working_dir var
    error_log_path var/"log/tambour.log"
  end

  test do
    assert_match "tambour #{version}", shell_output("#{bin}/tambour -V")
    assert_equal '{"a":[1,2]}', pipe_output("#{bin}/tambour json", '{"a": [1, 2,}').strip
  end
end
