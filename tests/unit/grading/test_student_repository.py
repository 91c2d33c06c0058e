# SPDX-License-Identifier: GPL-2.0-or-later
"""The template of students' repositories.

Its workflow, its pipeline and its commands run as they stand. A stand-in for docker starts the image's scripts here.
The gradings are real, on fake machines (fake_class.py).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from fwlab.grading.student_bundle import bundle_files
from fwlab.grading.student_repository import FILES, repository_files, write_repository
from fwlab.model.drawn import SEEDS
from fwlab.model.errors import BadInput
from tests import ROOT
from tests.checkout import LAB_IDS, PROJECT, lab_named
from tests.fakes.fake_grading import EXERCISE, LAB, FakeGrading
from tests.fakes.hand_ins import RULES

OF = "lab03-ipset"
IMAGE = "registry.example.org/course/fwlab:1.0"
COMMIT = "0123456789abcdef"
#: In place of docker: notes what is mounted, and runs the command with the host's folders in place of the container's.
DOCKER = """#!{python}
import json, os, sys
words = sys.argv[1:]
mounts = dict(word.removeprefix("--volume=").split(":")[1::-1] for word in words if word.startswith("--volume="))
at = words.index("{image}")
json.dump({{"options": words[:at], "mounts": mounts}}, open("{noted}", "w"))
command = words[at + 1 :]
for there in sorted(mounts, key=len, reverse=True):
    command = [mounts[there] + word.removeprefix(there) if word.startswith(there) else word for word in command]
command[0] = command[0].replace("/opt/fwlab/", "{root}/")
os.chdir("{checkout}")
os.execvpe(command[0], command, {{**os.environ, "FWLAB_CACHE": "{checkout}"}})
"""
FWLAB = """#!{python}
import sys
sys.path.insert(0, "{root}")
from fwlab.cli.main import main
from tests.fakes.fake_class import fake_machines
with fake_machines():
    main()
"""


class Repository:
    """A student's repository of the small lab, and what stands in for docker and fwlab."""

    def __init__(self, top: Path) -> None:
        self.top, self.folder = top, top / "lab-ada"
        self.grading = FakeGrading(top)
        write_repository(PROJECT, OF, self.folder, IMAGE)
        for path in (".github/grade", ".github/shell", ".gitlab-ci.yml", ".devcontainer/devcontainer.json"):
            text = (self.folder / path).read_text()
            (self.folder / path).write_text(text.replace(OF, LAB))
        self.bin = top / "bin"
        self.bin.mkdir()
        known = {"python": sys.executable, "root": ROOT, "checkout": self.grading.top, "image": IMAGE}
        self.add("docker", DOCKER.format(noted=top / "noted.json", **known))
        self.add("fwlab", FWLAB.format(**known))

    def add(self, name: str, text: str) -> None:
        (self.bin / name).write_text(text)
        (self.bin / name).chmod(0o755)

    def hand_in(self, text: str = RULES) -> None:
        (self.folder / "work" / EXERCISE).mkdir(exist_ok=True)
        (self.folder / "work" / EXERCISE / "rules.iptables").write_text(text)

    def sh(self, script: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run as a runner does: bash, ended by the first command that fails."""
        known = {name: value for name, value in os.environ.items() if not name.startswith(("FWLAB", "GITHUB", "CI_"))}
        env = {**known, "PATH": f"{self.bin}:{os.environ['PATH']}", "COLUMNS": "200", **environment}
        command = ["bash", "-e", "-c", script]
        return subprocess.run(command, cwd=self.folder, env=env, capture_output=True, text=True)

    @property
    def noted(self) -> dict:
        return json.loads((self.top / "noted.json").read_text())


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


def run_workflow(repository: Repository, commit: str = COMMIT) -> tuple[int, str, str]:
    """Run the shell's steps of the workflow: the exit code of the first that fails, what was printed, the summary."""
    workflow = yaml.safe_load((repository.folder / ".github/workflows/grade.yml").read_text())
    summary = repository.top / "summary"
    summary.write_text("")
    known = {"GITHUB_REPOSITORY": "class/lab-ada", "GITHUB_SHA": commit, "GITHUB_STEP_SUMMARY": str(summary)}
    code, printed = 0, ""
    for step in workflow["jobs"]["grade"]["steps"]:
        if "run" in step and (code == 0 or step.get("if") == "${{ !cancelled() }}"):
            done = repository.sh(step["run"], **known)
            code, printed = code or done.returncode, printed + done.stdout + done.stderr
    return code, printed, summary.read_text()


# ---- the workflow, the pipeline, the container ------------------------------------------------------------------


def test_the_workflow_grades_work_and_shows_what_was_measured(repository: Repository) -> None:
    repository.hand_in()
    code, printed, summary = run_workflow(repository)
    assert code == 0, printed
    assert "**100 of 100 points**" in summary
    assert f"| {EXERCISE}: " in summary
    graded = repository.folder / "graded"
    assert {"summary.md", "results.json", "index.html", "junit.xml"} <= {path.name for path in graded.iterdir()}


def test_a_failure_fails_the_run_and_says_why(repository: Repository) -> None:
    repository.hand_in(f"# on the DUT: leaks\n{RULES}")
    code, _, summary = run_workflow(repository)
    assert code == 1
    assert "| fail | " in summary
    assert "<pre>delivered-attacker: fail: " in summary


def test_nothing_else_of_the_repository_reaches_the_image(repository: Repository) -> None:
    """Neither a lab with other limits, nor a course.yml, nor a program."""
    repository.hand_in(f"# on the DUT: leaks\n{RULES}")
    (repository.folder / "labs" / LAB).mkdir()
    (repository.folder / "labs" / LAB / "lab.yml").write_text("title: every limit is open\n")
    (repository.folder / "course.yml").write_text("points: 1000\n")
    code, _, summary = run_workflow(repository)
    assert (code, "0 of 100 points" in summary) == (1, True)
    folder = repository.folder
    assert repository.noted["mounts"] == {"/srv/handed-in": str(folder / "work"), "/srv/graded": str(folder / "graded")}
    options = repository.noted["options"]
    assert {"--network=none", "--cap-drop=ALL", "--security-opt=no-new-privileges"} <= set(options)
    assert f"--volume={folder / 'work'}:/srv/handed-in:ro" in options


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("rm -r work; ln -s /etc work", "there is no folder work/ here"),
        ("rm -r work", "there is no folder work/ here"),
        (f"ln -s /etc/passwd work/{EXERCISE}/more.iptables", "more.iptables"),
        (f"mv work/{EXERCISE} kept; ln -s ../kept work/{EXERCISE}", EXERCISE),
    ],
)
def test_links_are_not_followed(repository: Repository, script: str, said: str) -> None:
    repository.hand_in()
    assert repository.sh(script).returncode == 0
    code, printed, summary = run_workflow(repository)
    assert code in (1, 2)
    assert said in printed + summary
    assert "root:" not in printed + summary


SAYS = '#!/bin/sh\necho fwlab "$@" >&2\n'


def test_each_repository_and_commit_has_traffic_of_its_own(repository: Repository) -> None:
    repository.hand_in()
    repository.add("fwlab", SAYS)

    def seed(name: str, commit: str) -> int:
        done = repository.sh(f"sh .github/grade {name} {commit}")
        return int(re.search(r"^fwlab grade .* --traffic-seed (\d+)$", done.stderr, re.MULTILINE)[1])

    drawn = [seed("lab-ada", COMMIT), seed("lab-ada", "fedcba"), seed("lab-bob", COMMIT)]
    assert len(set(drawn)) == 3
    assert drawn[0] == seed("lab-ada", COMMIT)
    assert max(drawn) < SEEDS
    assert "--traffic-seed" not in repository.sh("sh .github/grade").stderr


def test_gitlabs_pipeline_grades_the_same(repository: Repository) -> None:
    repository.hand_in()
    job = yaml.safe_load((repository.folder / ".gitlab-ci.yml").read_text())["grade"]
    assert job["image"] == {"name": IMAGE, "entrypoint": [""]}
    top = str(repository.folder)
    known = {"CI_PROJECT_DIR": top, "CI_PROJECT_NAME": "lab-ada", "CI_COMMIT_SHA": COMMIT}
    inside = f"cd {repository.grading.top}; export FWLAB_CACHE=/;"  # as the entry point leaves it
    for line in job["script"]:
        assert "/opt/fwlab/" in line
        done = repository.sh(inside + line.replace("/opt/fwlab/", f"{ROOT}/"), **known)
        assert done.returncode == 0, done.stdout + done.stderr
    report = repository.folder / job["artifacts"]["reports"]["junit"]
    assert f'classname="lab-ada.{EXERCISE}"' in report.read_text()
    run_workflow(repository)
    assert report.read_text() == (repository.folder / "graded/junit.xml").read_text()


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (["lab03-ipset"], "four words are needed"),
        (["lab03-ipset", "work", "/out", "ada"], "work does not begin with /"),
        (["lab03-ipset", "/etc", "out", "ada"], "out does not begin with /"),
        (["lab03-ipset", "/none", "/tmp", "ada"], "there is no folder /none"),
        (["lab03-ipset", "/etc", "/tmp", "../ada"], "'../ada' is no student's name"),
        (["lab03-ipset", "/etc", "/proc/none", "ada"], "/proc/none cannot be written to"),
    ],
)
def test_what_the_images_script_refuses_is_a_sentence(words: list[str], fault: str) -> None:
    command = ["sh", str(ROOT / "provision/image/grade"), *words]
    done = subprocess.run(command, env={**os.environ, "FWLAB_CACHE": "/"}, capture_output=True, text=True)
    assert done.returncode == 2
    assert f"fwlab: {fault}" in done.stderr
    assert "  next: " in done.stderr


@pytest.mark.parametrize("name", ["grade", "open"])
def test_outside_a_lab_the_images_scripts_go_through_its_entry_point(tmp_path: Path, name: str) -> None:
    entry = tmp_path / "provision/image/enter"
    entry.parent.mkdir(parents=True)
    entry.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    entry.chmod(0o755)
    script = tmp_path / name
    script.write_text((ROOT / "provision/image" / name).read_text().replace("/opt/fwlab", str(tmp_path)))
    env = {key: value for key, value in os.environ.items() if key != "FWLAB_CACHE"}
    done = subprocess.run(["sh", str(script), "a b", "/c", "/d", "e"], env=env, capture_output=True, text=True)
    assert done.stdout.splitlines() == [str(script), "a b", "/c", "/d", "e"]


def attach(repository: Repository, **environment: str) -> str:
    """Run the container's command in a home with a lab, as the editor does; what fwlab was called with."""
    command = json.loads((repository.folder / ".devcontainer/devcontainer.json").read_text())["postAttachCommand"]
    lab = repository.grading.top / "labs" / LAB
    if not (lab / "work").is_symlink():
        (lab / "work").mkdir()
    repository.add("fwlab", SAYS)
    home = f"cd {repository.folder}; export FWLAB_CACHE=/; "
    script = command.replace("/opt/fwlab/", f"{ROOT}/").replace('"$PWD"', str(repository.folder))
    done = repository.sh(f"{home} cd {repository.grading.top}; {script}", **environment)
    assert done.returncode == 0, done.stderr
    assert (lab / "work").resolve() == repository.folder / "work"
    return done.stderr


def test_an_editors_container_opens_the_page_on_the_repositorys_work(repository: Repository) -> None:
    assert attach(repository) == "fwlab web\n"
    assert attach(repository) == "fwlab web\n", "a second time, too"
    (repository.folder / "tasks.yml").write_text("format: fwlab-tasks/1\ntasks: {}\n")
    tasks = repository.folder / "tasks.yml"
    asked, web = attach(repository, CODESPACE_NAME="x-y", GITHUB_REPOSITORY="class/lab-bob").splitlines()
    assert web == "fwlab web --origin https://x-y-8080.app.github.dev"
    assert asked == f"fwlab task {LAB} ex1-one-host --student lab-bob --file {tasks}"
    (repository.folder / "work/task.yml").write_text("mine")
    assert attach(repository) == "fwlab web\n"


def test_a_shell_has_the_repository_at_its_own_name(repository: Repository) -> None:
    (repository.grading.top / "labs" / LAB / "work").mkdir()
    done = repository.sh(f"sh .github/shell ls -l labs/{LAB}/work")
    assert str(repository.folder / "work") in done.stdout
    assert repository.noted["mounts"] == {"/srv/repositories/lab-ada": str(repository.folder)}


# ---- the files --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workflow", ["template", "guides/own/workflow.yml"])
def test_actionlint_finds_nothing(tmp_path: Path, workflow: str) -> None:
    found = shutil.which("actionlint", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if found is None:
        pytest.skip("actionlint is not installed: `make test-setup` installs it where Go is")
    if workflow == "template":
        write_repository(PROJECT, OF, tmp_path / "made", IMAGE)
        path = tmp_path / "made/.github/workflows/grade.yml"
    else:
        path = ROOT / workflow
    done = subprocess.run([found, "-no-color", path], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_workflow_may_only_read() -> None:
    workflow = yaml.safe_load((ROOT / "guides/repository/grade.yml").read_text())
    assert workflow["permissions"] == {"contents": "read"}
    (checkout,) = [step for step in workflow["jobs"]["grade"]["steps"] if "checkout" in step.get("uses", "")]
    assert checkout["with"] == {"persist-credentials": False}
    assert "secrets" not in (ROOT / "guides/repository/grade.yml").read_text()


@pytest.mark.parametrize("lab_id", LAB_IDS)
def test_it_has_the_labs_pages_and_nothing_that_decides(lab_id: str) -> None:
    files = repository_files(PROJECT, lab_id, IMAGE)
    assert {*FILES.values(), f"labs/{lab_id}/README.md", "work/README.md", ".gitignore"} <= set(files)
    own = {*FILES.values(), "work/README.md", ".gitignore"}
    assert set(files) - own <= set(bundle_files(PROJECT, [lab_named(lab_id)])), "what a bundle keeps back stays back"
    assert not [name for name in files if name.endswith((".py", "lab.yml", "ranges.yml", "answers.yml", ".j2"))]
    texts = {name: content.decode() for name, (content, _) in files.items()}
    assert not [name for name, text in texts.items() if re.search(r"@[A-Z]+@", text)]
    for name, text in texts.items():
        for target in re.findall(r"\]\(([^)#\s]+)", text) if name.endswith(".md") else ():
            path = os.path.normpath(Path(name).parent / target)
            known = path in files or any(one.startswith(f"{path}/") for one in files)
            assert re.match(r"[a-z]+:", target) or known, f"{name}: {target}"


def test_numbers_are_taken_along_and_no_secret(tmp_path: Path) -> None:
    tasks = tmp_path / "tasks.yml"
    tasks.write_text(f"format: fwlab-tasks/1\ntasks: {{{OF}: {{lab-ada: {{attacker: 2}}}}}}\n")
    files = repository_files(PROJECT, OF, IMAGE, tasks)
    assert files["tasks.yml"] == (tasks.read_bytes(), False)
    assert b'"$CI_COMMIT_SHA" --tasks "$CI_PROJECT_DIR/tasks.yml"' in files[".gitlab-ci.yml"][0]
    with pytest.raises(BadInput, match="it has no tasks of lab04-nftables"):
        repository_files(PROJECT, "lab04-nftables", IMAGE, tasks)


@pytest.mark.parametrize("image", ["", "a b", "-rm", 'x"', "x\ny", "$(id)"])
def test_a_name_that_is_no_image_is_refused(image: str) -> None:
    with pytest.raises(BadInput, match="is no name of an image"):
        repository_files(PROJECT, OF, image)


def test_a_folder_with_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    with pytest.raises(BadInput, match="is not an empty folder"):
        write_repository(PROJECT, OF, tmp_path, IMAGE)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
