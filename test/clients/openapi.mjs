// Checks an OpenAPI document, given on standard input, against the schema of
// its version; prints what is wrong and the version.

import { readFileSync } from 'node:fs';
import { Validator } from '@seriousme/openapi-schema-validator';

const validator = new Validator();
const { valid, errors } = await validator.validate(JSON.parse(readFileSync(0, 'utf8')));
console.log(JSON.stringify({ valid, errors: errors ?? [], version: validator.version }));
