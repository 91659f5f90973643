#!yaml
# launch 17 on web1
# Saltern plan HASH

# ---- chunk 1 of 3 ----
# Ends with a restart of the machine; what follows waits until it is up again.

"step 1: install nginx":
  module.run:
    - pkg.install:
        - pkgs:
            - nginx
        - refresh: true

"step 2: run a script: #!/bin/sh echo one echo two":
  module.run:
    - cmd.exec_code_all:
        - lang: /bin/sh
        - code: |
            #!/bin/sh
            echo one
            echo two
    - require:
        - module: "step 1: install nginx"

"step 3: reboot":
  module.run:
    - system.reboot:
        - at_time: 1
    - require:
        - module: "step 2: run a script: #!/bin/sh echo one echo two"

# ---- chunk 2 of 3 ----
# Begins when step 4 may: after its barrier, within its budget, with its approval.
# Ends with a restart of the agent; what follows waits until it is back.

"step 4: apply web":
  module.run:
    - state.apply:
        - mods:
            - web
        - queue: true
    - require:
        - module: "step 3: reboot"

"step 5: restart nginx":
  module.run:
    - service.restart:
        - name: nginx
    - onfail:
        - module: "step 4: apply web"

"step 6: test.ping":
  module.run:
    - test.ping: []

"step 7: update the agent to 3008.3":
  module.run:
    - pkg.install:
        - pkgs:
            - salt-minion: "3008.3"
        - only_upgrade: true
        - refresh: true
    - require:
        - module: "step 4: apply web"
        - module: "step 5: restart nginx"
        - module: "step 6: test.ping"

# ---- chunk 3 of 3 ----

# step 7.check: check that it took effect: update the agent to 3008.3
# pkg.version salt-minion must return "3008.3"
