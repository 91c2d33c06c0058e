# SPDX-License-Identifier: GPL-2.0-or-later
"""Classroom 50's autograder of this lab: grades work/ of the checkout in the image, and writes result.json.

It lies with `grade` in CLASSROOM/autograders/ASSIGNMENT/ of the instructor's classroom50 repository, and runs in the
student's checkout. Its contract: https://github.com/foundation50/classroom50/wiki/Advanced-Autograding
"""

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

HERE = Path(__file__).parent
done = subprocess.run(["sh", HERE / "grade", os.environ["OWNER"], os.environ["GITHUB_SHA"]], check=False)
points = Path("graded/classroom.json")
if not points.is_file():
    sys.exit(done.returncode or 1)  # an error of the infrastructure, and no mark
tests = [
    {
        "test-name": test["name"],
        "passed": test["status"] == "pass",
        "score": round(test["score"]),
        "max-score": round(test["max_score"]),
        "message": test["message"],
    }
    for test in json.loads(points.read_text())["tests"]
]
committed = ["git", "show", "--no-patch", "--format=%ct", os.environ["GITHUB_SHA"]]
seconds = int(subprocess.run(committed, check=True, capture_output=True, text=True).stdout)
result = {
    "schema": "classroom50/result/v1",
    "classroom": os.environ["CLASSROOM"],
    "assignment": os.environ["ASSIGNMENT"],
    "submission": os.environ["SUBMISSION_TAG"],
    "commit": os.environ["COMMIT_URL"],
    "release": os.environ["RELEASE_URL"],
    "review": os.environ.get("REVIEW_URL") or os.environ["COMMIT_URL"],
    "datetime": datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    "score": sum(test["score"] for test in tests),
    "max-score": sum(test["max-score"] for test in tests),
    "tests": tests,
}
Path("result.json").write_text(json.dumps(result, indent=1))
