//! The file and pillar tree that the stock minions are given: every feature an operator's tree uses, in small.

use saltern_testkit::scratch::Scratch;

/// The tree on disk, and the configuration that serves it.
#[derive(Debug)]
pub struct Tree {
    scratch: Scratch,
}

/// Bytes of the large file: not a multiple of the size in which it is served.
pub const LARGE: usize = 50 * 1024 * 1024 + 17;

impl Tree {
    /// Writes the tree.
    pub fn new() -> Self {
        let scratch = Scratch::new("tree");
        for (path, content) in FILES {
            scratch.write(path, content);
        }
        // Bytes that do not repeat with the size of a chunk, so that a chunk in the wrong place shows.
        let large: Vec<u8> = (0..LARGE as u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        scratch.write("salt/large.bin", large);
        Self { scratch }
    }

    /// The server's configuration for it.
    pub fn config(&self) -> String {
        let root = self.scratch.path().display();
        format!("file_roots:\n  base: [{root}/salt]\npillar_roots:\n  base: [{root}/pillar]\n")
    }

    /// Where the minions write what the states make.
    pub fn out(&self, minion: &str, name: &str) -> std::path::PathBuf {
        self.scratch.path().join("out").join(minion).join(name)
    }

    /// The large file.
    pub fn large(&self) -> std::path::PathBuf {
        self.scratch.path().join("salt/large.bin")
    }

    /// The folder below which minions write.
    pub fn out_root(&self) -> String {
        self.scratch.path().join("out").display().to_string()
    }

    /// Adds the pillar that says where to write; separate because it depends on where the tree is.
    pub fn finish(&self) {
        self.scratch.write("pillar/paths.sls", format!("out: {}\n", self.out_root()));
    }
}

impl Default for Tree {
    fn default() -> Self {
        let tree = Self::new();
        tree.finish();
        tree
    }
}

const FILES: &[(&str, &str)] = &[
    (
        "pillar/top.sls",
        "base:\n  '*':\n    - paths\n    - common\n  'G@kernel:Linux and m300*':\n    - match: compound\n    - by_grain\n",
    ),
    (
        "pillar/common.sls",
        "include:\n  - extra\ngreeting: grüß dich\nnumbers: [1, 2, 3]\nnested:\n  deep:\n    key: value for {{ grains.id }}\n",
    ),
    ("pillar/extra.sls", "nested:\n  deep:\n    other: merged\nmode: 0644\n"),
    ("pillar/by_grain.sls", "matched_by: {{ grains['kernel'] }}\n"),
    ("salt/top.sls", "base:\n  '*':\n    - web\n"),
    (
        "salt/web/init.sls",
        "{% set dir = pillar['out'] ~ '/' ~ grains['id'] %}\n\
         {% from 'web/map.jinja' import settings with context %}\n\
         include:\n  - web.last\n\n\
         outdir:\n  file.directory:\n    - name: {{ dir }}\n    - makedirs: True\n\n\
         config:\n  file.managed:\n    - name: {{ dir }}/app.conf\n    - source: salt://web/files/app.conf.jinja\n    - template: jinja\n\
         \x20   - context:\n        port: {{ settings.port }}\n    - require:\n      - file: outdir\n\n\
         reload:\n  cmd.run:\n    - name: echo reloaded >> {{ dir }}/reload.log\n    - onchanges:\n      - file: config\n",
    ),
    (
        "salt/web/last.sls",
        "{% set dir = pillar['out'] ~ '/' ~ grains['id'] %}\nlast:\n  file.append:\n    - name: {{ dir }}/last.txt\n    - text: last\n    - require:\n      - cmd: reload\n",
    ),
    ("salt/web/map.jinja", "{% set settings = {'port': 8080 if grains['kernel'] == 'Linux' else 0} %}\n"),
    (
        "salt/web/files/app.conf.jinja",
        "# {{ pillar['greeting'] }}\nid = {{ grains['id'] }}\nport = {{ port }}\ndeep = {{ pillar['nested']['deep']['key'] }}\n",
    ),
    ("salt/broken.sls", "boom:\n  cmd.run:\n    - name: exit 7\n"),
    (
        "salt/_modules/fixture.py",
        "def answer():\n    return {'answer': 42, 'id': __grains__['id']}\n\n\ndef fails():\n    raise ValueError('on purpose')\n\n\n\
         def big(size):\n    return 'x' * int(size)\n",
    ),
];
