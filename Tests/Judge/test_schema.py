"""The descriptors' JSON Schema in a validator that is independent of credmgr."""

import glob
import json
import os
import re
import unittest

import yaml
from jsonschema import Draft202012Validator

from program import DESCRIPTORS, ROOT, text_of



class Loader(yaml.SafeLoader):
    """YAML 1.2's core schema: only `null`, `true` and `false` differ from text."""


Loader.yaml_implicit_resolvers = {}
Loader.add_implicit_resolver("tag:yaml.org,2002:null", re.compile("^(~|null|Null|NULL|)$"), ["~", "n", "N", ""])
Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("^(true|false)$"), ["t", "f"])


def parse(text):
    return yaml.load(text, Loader)


class Schema(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        schema = json.loads(text_of("docs/descriptor.schema.json"))
        Draft202012Validator.check_schema(schema)
        cls.validator = Draft202012Validator(schema)

    def test_shipped_descriptors_are_accepted(self):
        paths = glob.glob(os.path.join(ROOT, "providers", "*.yaml"))
        self.assertGreaterEqual(len(paths), 7)
        for path in sorted(paths):
            with self.subTest(path=os.path.basename(path)), open(path, encoding="utf-8") as file:
                self.assertEqual([], [error.message for error in self.validator.iter_errors(parse(file.read()))])

    def test_examples_of_the_reference_are_accepted(self):
        examples = [part.split("```")[0] for part in text_of("docs/descriptors.md").split("```yaml\n")[1:]]
        self.assertGreater(len(examples), 10)
        for example in examples:
            with self.subTest(example=example.splitlines()[0]):
                self.assertEqual([], [error.message for error in self.validator.iter_errors(parse(example))])

    def test_faulty_descriptors_are_refused(self):
        with open(os.path.join(DESCRIPTORS, "faulty.json"), encoding="utf-8") as file:
            faulty = json.load(file)
        self.assertGreater(len(faulty), 20)
        for description, text in faulty:
            with self.subTest(description=description):
                self.assertFalse(self.validator.is_valid(parse(text)))
